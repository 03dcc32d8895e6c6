"""What a rank of a TorchEstimator does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_supplier.ml.features import Labels, loss_of

if TYPE_CHECKING:
    import torch

    from spark_supplier.node.rank_data import RankData

# The sum of the losses of each batch, and its rows.
Losses = list[tuple["torch.Tensor", int]]


@dataclass
class Training:
    """As for TorchEstimator. features, label: the columns."""

    model: torch.nn.Module | Callable[[], torch.nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None
    seed: int
    features: str
    label: str
    labels: Labels

    def summed(self, loss: torch.Tensor, rows: int) -> tuple[torch.Tensor, int]:
        """Of a batch of these rows."""
        # Of a class of PyTorch, or of a partial of its function.
        reduction = getattr(self.loss, "reduction", None) or getattr(self.loss, "keywords", {}).get("reduction")
        return loss.detach() * (1 if reduction == "sum" else rows), rows


@dataclass
class Trained:
    """module: on the CPU. history: the mean losses of each epoch. size: of a row. is_scalar: it has one output."""

    module: torch.nn.Module
    history: list[dict[str, float]]
    size: int
    is_scalar: bool


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
    size, is_scalar = 0, False
    for epoch in data.epochs():
        module.train()
        losses: Losses = []
        for batch in epoch:
            features = batch[training.features]
            output = model(features)
            size, is_scalar = features.shape[1], output[0].numel() == 1
            loss = _loss(training, output, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(training.summed(loss, len(features)))
        means = {"loss": _mean(losses, device)}
        if validation is not None:
            losses = _evaluate(training, module, next(validation))
            means["validation_loss"] = _mean(losses, device)
        history.append(means)
    return Trained(module.cpu(), history, size, is_scalar)


def _loss(training: Training, output: torch.Tensor, batch: Any) -> torch.Tensor:
    return loss_of(training.loss, output, batch[training.label], training.labels, training.label)


def _evaluate(training: Training, module: torch.nn.Module, epoch: Any) -> Losses:
    """The losses of the validation data. Each rank has other batches."""
    import torch

    module.eval()
    losses = []
    with torch.no_grad():
        for batch in epoch:
            features = batch[training.features]
            losses.append(training.summed(_loss(training, module(features), batch), len(features)))
    return losses


def _mean(losses: Losses, device: torch.device) -> float:
    """Over the rows of all ranks. Supplier.run refuses data without a row."""
    import torch
    from torch import distributed

    sums = [sum(float(loss) for loss, _ in losses), sum(rows for _, rows in losses)]
    # A rank without rows would have integers.
    total = torch.tensor(sums, dtype=torch.float64).to(device)
    distributed.all_reduce(total)
    return float(total[0] / total[1])
