"""Ranks with different numbers of elements make the same number of steps."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import distributed

from supply.errors import SupplyError

Batch = dict[str, torch.Tensor]


class EqualSteps:
    """The last steps of an epoch, as SupplyDataset's option `uneven` says."""

    def __init__(self, uneven: str, batch_size: int, process_group: distributed.ProcessGroup | None) -> None:
        if uneven not in ("keep", "drop", "pad"):
            raise ValueError(f"uneven is {uneven!r}, must be 'keep', 'drop' or 'pad'")
        self._uneven = uneven
        self._batch_size = batch_size
        self._process_group = process_group
        # The batch that "pad" repeats, and the position after it. A rank that resumes after its last batch of an epoch
        # has it from its saved state.
        self.last: tuple[Batch, str] | None = None

    def steps(self, batches: Iterator[tuple[Batch, str]]) -> Iterator[tuple[Batch, str]]:
        """The steps of this rank. Except with "keep", they end on all ranks at once."""
        if self._uneven == "keep":
            yield from batches
        elif self._uneven == "drop":
            while self._all(step := self._full(next(batches, None))) and step is not None:
                yield step
        else:
            yield from self._padded(batches)

    def _full(self, step: tuple[Batch, str] | None) -> tuple[Batch, str] | None:
        return step if step is not None and _size(step[0]) == self._batch_size else None

    def _padded(self, batches: Iterator[tuple[Batch, str]]) -> Iterator[tuple[Batch, str]]:
        while self._any(step := next(batches, None)):
            self.last = step or self.last
            if self.last is None:
                raise SupplyError(
                    "uneven='pad': this rank has no element in this epoch (or none after its state, if you saved that "
                    "without 'pad'), so it has nothing to repeat: use 'drop', or fewer ranks"
                )
            yield self._filled(self.last[0]), self.last[1]

    def _filled(self, batch: Batch) -> Batch:
        size = _size(batch)
        if size == self._batch_size:
            return batch
        indices = torch.arange(self._batch_size) % size
        return {name: tensor[indices] for name, tensor in batch.items()}

    def _all(self, step: object) -> bool:
        return self._reduced(step, distributed.ReduceOp.MIN)

    def _any(self, step: object) -> bool:
        return self._reduced(step, distributed.ReduceOp.MAX)

    def _reduced(self, step: object, operation: distributed.ReduceOp) -> bool:
        mine = torch.tensor([step is not None], dtype=torch.int32)
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(mine, operation, group=self._process_group)
        return bool(mine.item())


def _size(batch: Batch) -> int:
    return len(next(iter(batch.values())))
