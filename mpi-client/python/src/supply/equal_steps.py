"""Ranks with different numbers of elements make the same number of steps."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import distributed

from supply.batch import Batch, copied, moved, repeated, size_of
from supply.batches import Made
from supply.errors import SupplyError, SupplyTimeoutError
from supply.times import Seconds

_UNKNOWN = -1
# The number of ranks, from the nearest launcher first (as in src/files/options.c): torchrun, Open MPI, MPICH, srun.
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


class Step(NamedTuple):
    """A batch, the position after it, and the batch that "pad" would repeat after it.

    position: None if this rank has had no element of its own.
    """

    batch: Batch
    position: str | None
    last: Batch | None = None


class _Ahead(NamedTuple):
    """What all ranks have next. fewest, most: the batches that a rank certainly has, of all ranks.

    without: the first rank that has none; giver: the first rank that has one, or repeats one. Without such a rank it is
    the number of ranks. all_repeat: whether each rank has a batch, or one to repeat.
    """

    fewest: int
    most: int
    without: int
    giver: int
    all_repeat: bool


class EqualSteps:
    """The steps of an epoch, as SupplyDataset's option `uneven` says.

    If Spark has not counted the elements, the ranks agree on a window of steps at a time: on those that a rank has in
    its block. So they need one all_reduce for each block, and with "pad" it runs while they take their own batches.
    """

    def __init__(
        self, uneven: str, batch_size: int, process_group: distributed.ProcessGroup | None, limit: float
    ) -> None:
        """limit: seconds to wait for the other ranks, if the group is its own."""
        self.uneven = uneven
        self._batch_size = batch_size
        self._group = process_group
        self._limit = limit
        # Whether this rank waits for the others. Any thread may ask.
        self.is_waiting = False
        # Whether "drop" refuses a whole epoch without a step. A stream may have one.
        self.needs_a_step = False
        # Where waits for the others are counted.
        self.seconds = Seconds()
        # Of the batches.
        self.device = torch.device("cpu")
        self._is_whole = True
        # Whether a rank has no element in any epoch, and so nothing to repeat.
        self._has_empty_rank = False
        # The first rank without a step in a whole epoch.
        self._without = 0
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
            mine = elements // self._batch_size if self.uneven == "drop" else -(-elements // self._batch_size)
        rank, ranks = _rank_and_ranks()
        values = torch.tensor([mine, -mine, int(not resumes), ranks if mine else rank])
        if self.uneven != "keep":
            self._begin_reduce(values)()
        fewest, most, is_whole, self._without = values.tolist()
        self._is_whole = bool(is_whole)
        self._has_empty_rank = fewest == 0
        whole = None if fewest == _UNKNOWN else fewest if self.uneven == "drop" else -most
        return whole, whole if is_whole else None

    def steps(
        self, batches: Iterator[Made], count: int | None, last: Batch | None, position: str | None
    ) -> Iterator[Step]:
        """The steps of this rank. Except with "keep", they end on all ranks at once.

        count: what agree() has returned for this epoch. If it is None, the ranks agree while they make the steps.
        last: what "pad" repeats if this rank has no batch left. position: where the rank is.
        """
        if self.uneven == "keep":
            for made in batches:
                yield Step(made.batch, made.position)
                del made
        elif self.uneven == "drop":
            yield from self._full_ones(batches, count)
        else:
            yield from self._padded(batches, count, last, position)

    def _full_ones(self, batches: Iterator[Made], count: int | None) -> Iterator[Step]:
        done, agreed = 0, count or 0
        if count == 0:
            self._require_a_step(self._without)
        while done != count:
            made = next(batches, None)
            if made is not None and size_of(made.batch) < self._batch_size:
                made = None
            if done == agreed:
                ahead = self._begin_agreement(0 if made is None else 1 + made.left // self._batch_size, True)()
                if done + ahead.fewest == 0:
                    self._require_a_step(ahead.without)
                if ahead.fewest == 0:
                    return
                agreed += ahead.fewest
            if made is None:
                raise SupplyError(f"uneven='drop': this rank got {done} full batches, but Spark announced {count}")
            yield Step(made.batch, made.position)
            done += 1
            # Otherwise it would hold its block during the next wait.
            del made

    def _require_a_step(self, without: int) -> None:
        if self.needs_a_step and self._is_whole:
            raise SupplyError(
                f"uneven='drop' leaves no step: rank {without} has fewer than {self._batch_size} rows (batch_size), so "
                "all rows would be dropped: use uneven='pad', a smaller batch_size, or fewer ranks"
            )

    def _padded(
        self, batches: Iterator[Made], count: int | None, last: Batch | None, position: str | None
    ) -> Iterator[Step]:
        done, known_until = 0, 0 if self._has_empty_rank else count or 0
        asked_at, answers = 0, None
        while done != count:
            made = next(batches, None)
            if made is not None:
                # The program may change what it gets. Only the last batch of a block can be the one to repeat.
                last, position = made.batch if made.left else copied(made.batch), made.position
            # What this rank has is sure to come. So it waits for the others' answers only when it has taken that.
            while done == known_until:
                if answers is None:
                    # What is left of the block is in a batch in any case.
                    own = 0 if made is None else 1 + -(-made.left // self._batch_size)
                    asked_at, answers = done, self._begin_agreement(own, last is not None)
                    # At the first step it waits at once: a rank that has nothing to repeat needs this one's batch.
                    known_until += own if done else 0
                else:
                    ahead, answers = answers(), None
                    if ahead.most == 0:
                        return
                    known_until = asked_at + ahead.most
                    if not ahead.all_repeat:
                        last = self._shared(last, ahead.giver)
            assert last is not None
            yield Step(self._filled(copied(last) if made is None else made.batch), position, last)
            done += 1
            del made

    def _shared(self, last: Batch | None, giver: int) -> Batch:
        """Of a rank that has nothing to repeat, the giver's batch."""
        shared: list[Any] = [moved(last, "cpu") if last is not None and distributed.get_rank() == giver else None]
        group = self._group_of_cpu_tensors()
        with self._limited():
            distributed.broadcast_object_list(shared, giver, group)
        return moved(shared[0], self.device) if last is None else last

    def _filled(self, batch: Batch) -> Batch:
        return batch if size_of(batch) == self._batch_size else repeated(batch, self._batch_size)

    def _begin_agreement(self, mine: int, repeats: bool) -> Callable[[], _Ahead]:
        """A function that waits for the answers of all ranks.

        mine: the batches that this rank certainly has. repeats: whether it has a batch, or one to repeat.
        """
        rank, ranks = _rank_and_ranks()
        values = torch.tensor([mine, -mine, ranks if mine else rank, rank if repeats else ranks, int(repeats)])
        wait = self._begin_reduce(values)

        def ahead() -> _Ahead:
            wait()
            fewest, most, without, giver, all_repeat = values.tolist()
            return _Ahead(fewest, -most, without, giver, bool(all_repeat))

        return ahead

    def _begin_reduce(self, values: torch.Tensor) -> Callable[[], None]:
        """Makes them the least values of all ranks. Returns a function that waits for that."""
        if not _is_initialized() and _ranks_of_launcher() > 1:
            raise SupplyError(
                f"uneven='drop' and 'pad' need torch.distributed for {_ranks_of_launcher()} ranks: initialize it "
                "before the first epoch (docs/PYTHON.md)"
            )
        if not _is_initialized() or distributed.get_world_size() == 1:
            return lambda: None
        begun = time.monotonic()
        group = self._group_of_cpu_tensors()
        with self._limited():
            work = distributed.all_reduce(values, distributed.ReduceOp.MIN, group=group, async_op=True)

        def wait() -> None:
            with self._limited(begun):
                work.wait()

        return wait

    @contextlib.contextmanager
    def _limited(self, begun: float | None = None) -> Iterator[None]:
        """Says what it means if a collective of the group has passed its limit. begun: when; None: now."""
        entered = time.perf_counter()
        begun = time.monotonic() if begun is None else begun
        self.is_waiting = True
        try:
            yield
        except RuntimeError as error:
            if time.monotonic() < begun + self._limit:
                raise
            raise SupplyTimeoutError(
                f"another rank has not taken its next batch or epoch for {self._limit:g} s: has it failed, or "
                f"is it stuck? (timeout / SUPPLY_TIMEOUT) torch.distributed says: {error}"
            ) from error
        finally:
            self.is_waiting = False
            self.seconds.ranks += time.perf_counter() - entered

    def _group_of_cpu_tensors(self) -> distributed.ProcessGroup:
        """A group of its own: NCCL takes no CPU tensors, and a group must not be used by two threads at once."""
        if self._group is None:
            self._group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=self._limit))
        return self._group


def _rank_and_ranks() -> tuple[int, int]:
    return (distributed.get_rank(), distributed.get_world_size()) if _is_initialized() else (0, 1)


def _is_initialized() -> bool:
    return bool(distributed.is_available() and distributed.is_initialized())


def _ranks_of_launcher() -> int:
    return next((int(os.environ[name]) for name in _SIZES if name in os.environ), 1)
