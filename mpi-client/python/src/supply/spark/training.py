"""What a rank of a TorchEstimator does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from supply.ranks.rank_data import RankData

# The mean loss of each batch, and its rows.
Losses = list[tuple["torch.Tensor", int]]


@dataclass
class Training:
    """As for TorchEstimator."""

    model: torch.nn.Module | Callable[[], torch.nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]
    seed: int


@dataclass
class Trained:
    """module: on the CPU. history: the mean losses of each epoch. is_scalar: whether the module has one output."""

    module: torch.nn.Module
    history: list[dict[str, float]]
    is_scalar: bool


def train(data: RankData, training: Training) -> Trained:
    """The function of all ranks. They make equal steps."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(training.seed)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    module = (training.model if isinstance(training.model, torch.nn.Module) else training.model()).to(device)
    model = DistributedDataParallel(module)
    optimizer = training.optimizer(module.parameters())
    validation = None if data.validation is None else data.validation.epochs()
    history = []
    is_scalar = False
    for epoch in data.epochs():
        module.train()
        losses: Losses = []
        for batch in epoch:
            output = model(batch["features"].to(device))
            is_scalar = output[0].numel() == 1
            loss = _loss(training, output, batch["label"].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append((loss.detach(), len(batch["label"])))
        means = {"loss": _mean(losses, device)}
        if validation is not None:
            means["validation_loss"] = _mean(_evaluate(training, module, next(validation), device), device)
        history.append(means)
    return Trained(module.cpu(), history, is_scalar)


def _loss(training: Training, output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    if label.is_floating_point() and output.dim() == 2 and output.shape[1] == 1:
        label = label.unsqueeze(1)
    return training.loss(output, label)


def _evaluate(training: Training, module: torch.nn.Module, epoch: Any, device: torch.device) -> Losses:
    """The losses of the validation data. Each rank has other batches."""
    import torch

    module.eval()
    with torch.no_grad():
        return [
            (_loss(training, module(batch["features"].to(device)), batch["label"].to(device)), len(batch["label"]))
            for batch in epoch
        ]


def _mean(losses: Losses, device: torch.device) -> float:
    """Over the rows of all ranks."""
    import torch
    from torch import distributed

    sums = [sum(float(loss) * rows for loss, rows in losses), sum(rows for _, rows in losses)]
    # A rank without rows would have integers.
    total = torch.tensor(sums, dtype=torch.float64).to(device)
    distributed.all_reduce(total)
    return float(total[0] / total[1])
