"""What a rank of a TorchEstimator does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_supplier.errors import RunError
from spark_supplier.ml.features import Labels, by_row, loss_of

if TYPE_CHECKING:
    import torch

    from spark_supplier.node.rank_data import RankData

# The sum of the losses of each batch, and its rows, or the sum of their weights.
Losses = list[tuple["torch.Tensor", Any]]


@dataclass
class Training:
    """As for TorchEstimator. features, label, weight: the columns. classes: 0: not known."""

    model: torch.nn.Module | Callable[[], torch.nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None
    seed: int
    features: str
    label: str
    labels: Labels
    classes: int = 0
    weight: str | None = None

    @property
    def is_sum(self) -> bool:
        """Of a class of PyTorch, or of a partial of its function."""
        reduction = getattr(self.loss, "reduction", None) or getattr(self.loss, "keywords", {}).get("reduction")
        return bool(reduction == "sum")

    def step(self, output: torch.Tensor, batch: Any) -> tuple[torch.Tensor, tuple[torch.Tensor, Any]]:
        """The loss of a batch, to differentiate, and what it adds to the losses."""
        label = batch[self.label]
        if self.weight is None:
            loss = loss_of(self.loss, output, label, self.labels, self.label)
            return loss, (loss.detach() * (1 if self.is_sum else len(label)), len(label))
        weight = batch[self.weight]
        losses = loss_of(by_row(self.loss), output, label, self.labels, self.label, weight)
        return losses.sum() if self.is_sum else losses.mean(), (losses.detach().sum(), weight.sum())

    def check_outputs(self, outputs: int) -> None:
        """outputs: of a row."""
        if self.classes and outputs != self.classes and (self.classes, outputs) != (2, 1):
            raise RunError(
                f"numClasses is {self.classes}, and the model has {outputs} outputs: give it {self.classes}"
                f"{', or one,' if self.classes == 2 else ''} with the scores of the classes"
            )
        if self.labels == Labels.CLASSES and outputs == 1:
            raise RunError("the loss takes classes, and the model has one output: give it one for each class")


@dataclass
class Trained:
    """module: on the CPU. history: the mean losses of each epoch. size, outputs: numbers of a row."""

    module: torch.nn.Module
    history: list[dict[str, float]]
    size: int
    outputs: int


def train(data: RankData, training: Training) -> Trained:
    """The function of all ranks. They make equal steps."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(training.seed)
    # The current GPU is the rank's.
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data.to(device)
    module = (training.model if isinstance(training.model, torch.nn.Module) else training.model()).to(device)
    # Ranks begin with one model, and draw other numbers then.
    torch.manual_seed(training.seed + distributed.get_rank())
    model = DistributedDataParallel(module)
    optimizer = (training.optimizer or torch.optim.Adam)(module.parameters())
    validation = None if data.validation is None else data.validation.epochs()
    history = []
    size, outputs = 0, 0
    for epoch in data.epochs():
        module.train()
        losses: Losses = []
        for batch in epoch:
            features = batch[training.features]
            output = model(features)
            if not outputs:
                size, outputs = features.shape[1], output[0].numel()
                training.check_outputs(outputs)
            loss, summed = training.step(output, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(summed)
        means = {"loss": _mean(losses, device)}
        if validation is not None:
            losses = _evaluate(training, module, next(validation))
            means["validation_loss"] = _mean(losses, device)
        history.append(means)
    return Trained(module.cpu(), history, size, outputs)


def _evaluate(training: Training, module: torch.nn.Module, epoch: Any) -> Losses:
    """The losses of the validation data. Each rank has other batches."""
    import torch

    module.eval()
    with torch.no_grad():
        return [training.step(module(batch[training.features]), batch)[1] for batch in epoch]


def _mean(losses: Losses, device: torch.device) -> float:
    """Over the rows of all ranks. Supplier.run refuses data without a row."""
    import torch
    from torch import distributed

    sums = [sum(float(each[i]) for each in losses) for i in range(2)]
    # A rank without rows would have integers.
    total = torch.tensor(sums, dtype=torch.float64).to(device)
    distributed.all_reduce(total)
    return float(total[0] / total[1])
