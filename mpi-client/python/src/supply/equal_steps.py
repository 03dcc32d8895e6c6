"""Ranks with different numbers of elements make the same number of steps."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import torch
from torch import distributed

from supply.batch import Batch, repeated, size_of
from supply.errors import SupplyError, SupplyTimeoutError

_UNKNOWN = -1
# The number of ranks, from the nearest launcher first (as in src/launcher.c): torchrun, Open MPI, MPICH, srun.
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


class Step(NamedTuple):
    """A batch, the position after it, and the batch that "pad" would repeat after it."""

    batch: Batch
    position: str
    last: Batch | None = None


class EqualSteps:
    """The last steps of an epoch, as SupplyDataset's option `uneven` says."""

    def __init__(
        self, uneven: str, batch_size: int, process_group: distributed.ProcessGroup | None, limit: float
    ) -> None:
        """limit: seconds to wait for the other ranks, if the group is its own."""
        self._uneven = uneven
        self._batch_size = batch_size
        self._group = process_group
        self._limit = limit
        # Whether this rank waits for the others. Any thread may ask.
        self.is_waiting = False
        if uneven != "keep" and _is_initialized():
            self._group_of_cpu_tensors()

    def agree(self, elements: int | None, resumes: bool) -> tuple[int | None, int | None]:
        """The steps of a whole epoch, and those of the epoch that begins now. None: a rank does not know them.

        Except with "keep", all ranks must call it.

        elements: the elements of this rank in a whole epoch, if it knows them.
        resumes: whether the epoch that begins now is the rest of one.
        """
        if elements is None:
            mine = _UNKNOWN
        else:
            mine = elements // self._batch_size if self._uneven == "drop" else -(-elements // self._batch_size)
        values = torch.tensor([mine, -mine, int(not resumes)])
        if self._uneven != "keep":
            self._reduce(values)
        fewest, most, is_whole = values.tolist()
        whole = None if fewest == _UNKNOWN else fewest if self._uneven == "drop" else -most
        return whole, whole if is_whole else None

    def steps(
        self, batches: Iterator[tuple[Batch, str]], count: int | None, last: tuple[Batch, str] | None
    ) -> Iterator[Step]:
        """The steps of this rank. Except with "keep", they end on all ranks at once.

        count: what agree() has returned for this epoch. If it is None, the ranks agree in each step.
        last: what "pad" repeats if this rank has no batch left, and its position.
        """
        if self._uneven == "keep":
            for batch, position in batches:
                yield Step(batch, position)
                del batch
        elif self._uneven == "drop":
            yield from self._full_ones(batches, count)
        else:
            yield from self._padded(batches, count, last)

    def _full_ones(self, batches: Iterator[tuple[Batch, str]], count: int | None) -> Iterator[Step]:
        done = 0
        while done != count:
            batch, position = next(batches, (None, ""))
            full = batch is not None and size_of(batch) == self._batch_size
            if count is None and not self._all(full):
                return
            if batch is None or not full:
                raise SupplyError(f"uneven='drop': this rank got {done} full batches, but Spark announced {count}")
            yield Step(batch, position)
            done += 1
            # Otherwise it would hold its block during the next wait.
            del batch

    def _padded(
        self, batches: Iterator[tuple[Batch, str]], count: int | None, last: tuple[Batch, str] | None
    ) -> Iterator[Step]:
        done = 0
        while done != count:
            step = next(batches, None)
            if count is None and not self._any(step is not None):
                return
            last = step or last
            if last is None:
                raise SupplyError(
                    "uneven='pad': this rank has no element in this epoch (or none after its state, if you saved that "
                    "without 'pad'), so it has nothing to repeat: use 'drop', or fewer ranks"
                )
            batch, position = last
            yield Step(self._filled(batch), position, batch)
            done += 1

    def _filled(self, batch: Batch) -> Batch:
        return batch if size_of(batch) == self._batch_size else repeated(batch, self._batch_size)

    def _all(self, mine: bool) -> bool:
        return bool(self._reduce(torch.tensor(int(mine))).item())

    def _any(self, mine: bool) -> bool:
        return not self._all(not mine)

    def _reduce(self, values: torch.Tensor) -> torch.Tensor:
        """The least values of all ranks, in place."""
        if not _is_initialized() and _ranks_of_launcher() > 1:
            raise SupplyError(
                f"uneven='drop' and 'pad' need torch.distributed for {_ranks_of_launcher()} ranks: initialize it "
                "before the first epoch (docs/PYTHON.md)"
            )
        if _is_initialized() and distributed.get_world_size() > 1:
            begun = time.monotonic()
            self.is_waiting = True
            try:
                distributed.all_reduce(values, distributed.ReduceOp.MIN, group=self._group_of_cpu_tensors())
            except RuntimeError as error:
                if time.monotonic() < begun + self._limit:
                    raise
                raise SupplyTimeoutError(
                    f"another rank has not taken its next batch or epoch for {self._limit:g} s: has it failed, or "
                    f"is it stuck? (timeout / SUPPLY_TIMEOUT) torch.distributed says: {error}"
                ) from error
            finally:
                self.is_waiting = False
        return values

    def _group_of_cpu_tensors(self) -> distributed.ProcessGroup:
        """A group of its own: NCCL takes no CPU tensors, and a group must not be used by two threads at once."""
        if self._group is None:
            self._group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=self._limit))
        return self._group


def _is_initialized() -> bool:
    return bool(distributed.is_available() and distributed.is_initialized())


def _ranks_of_launcher() -> int:
    return next((int(os.environ[name]) for name in _SIZES if name in os.environ), 1)
