"""Ranks with different numbers of elements make the same number of steps."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import distributed

from spark_supplier.batch import Batch, copied, joined, moved, size_of, taken
from spark_supplier.batches import Made
from spark_supplier.errors import SupplyError, SupplyTimeoutError
from spark_supplier.times import Seconds

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
    """What all ranks have next. fewest, most: the full batches that a rank certainly has, of all ranks.

    rest: the rows of the largest last batch that is not full. without: the first rank that has no full batch; giver:
    the first rank that has a batch, or repeats one. Without such a rank it is the number of ranks. all_repeat: whether
    each rank has a batch, or one to repeat.
    """

    fewest: int
    most: int
    rest: int
    without: int
    giver: int
    all_repeat: bool


class EqualSteps:
    """The steps of an epoch, as Dataset's option `uneven` says.

    The ranks agree on a window of steps at a time: on those that Spark has counted, then on those that a rank has in
    its block. So without a count they need one all_reduce for each block, and with "pad" it runs while they take their
    own batches. An epoch that has more elements than were counted loses none.
    """

    def __init__(
        self, uneven: str, batch_size: int, process_group: distributed.ProcessGroup | None, limit: float
    ) -> None:
        """limit: seconds to wait for the other ranks, if the group is its own."""
        self.uneven = uneven
        self._batch_size = batch_size
        self._group = process_group
        # Of its own. The program may destroy it, and then its store must go, too.
        self._made: Callable[[], distributed.ProcessGroup | None] = lambda: None
        self._limit = limit
        # Whether this rank waits for the others. Any thread may ask.
        self.is_waiting = False
        # Whether "drop" refuses a whole epoch without a step. A stream may have one.
        self.needs_a_step = False
        # Whether the batches are this rank's shares of batches of all ranks.
        self.is_global = False
        # Rows of this rank that "pad" has repeated, and that "drop" has left out; and those of the epoch in steps.
        self.repeated = self.left_out = self._taken = 0
        # Where waits for the others are counted.
        self.seconds = Seconds()
        # Of the batches.
        self.device = torch.device("cpu")
        self._is_whole = True
        # Full steps of the epoch that Spark has counted for all ranks.
        self._counted = 0
        if uneven != "keep" and _is_initialized():
            self._group_of_cpu_tensors()

    def agree(self, elements: int | None, resumes: bool) -> tuple[int | None, int | None]:
        """The steps of a whole epoch, and those of the epoch that begins now. None: a rank does not know them.

        Except with "keep", all ranks must call it.

        elements: the elements of this rank in a whole epoch, if it knows them.
        resumes: whether the epoch that begins now is the rest of one.
        """
        full, steps = (_UNKNOWN, _UNKNOWN) if elements is None else divmod(elements, self._batch_size)
        steps = full + 1 if steps > 0 else full
        values = torch.tensor([full, -full, steps, -steps, int(not resumes)])
        if self.uneven != "keep":
            self._begin_reduce(values)()
        fewest_full, most_full, fewest, most, is_whole = values.tolist()
        self._is_whole = bool(is_whole)
        counted = fewest_full if self._takes_full_ones else -most_full
        # A rank without an element has nothing to repeat.
        self._counted = max(0, counted) if is_whole and fewest > 0 else 0
        whole = None if fewest == _UNKNOWN else fewest_full if self.uneven == "drop" else -most
        return whole, whole if is_whole else None

    @property
    def _takes_full_ones(self) -> bool:
        return self.uneven == "drop" or self.is_global

    def steps(self, batches: Iterator[Made], last: Batch | None, position: str | None) -> Iterator[Step]:
        """The steps of this rank. Except with "keep", they end on all ranks at once.

        last: what "pad" repeats if this rank has no batch left. position: where the rank is.
        """
        self._taken = 0
        if self.uneven == "keep":
            for made in batches:
                yield Step(made.batch, made.position)
                del made
        elif self._takes_full_ones:
            yield from self._full_ones(batches, position)
        else:
            yield from self._padded(batches, last, position)

    def end(self, received: int) -> None:
        """The epoch has ended. received: the rows of it that this rank has received."""
        if self.uneven == "drop":
            self.left_out += received - self._taken

    def _full_ones(self, batches: Iterator[Made], position: str | None) -> Iterator[Step]:
        done, agreed = 0, self._counted
        while True:
            made = next(batches, None)
            is_full = made is not None and size_of(made.batch) == self._batch_size
            if done == agreed:
                own = 1 + made.left // self._batch_size if made is not None and is_full else 0
                ahead = self._begin_agreement(own, 0, True)()
                if ahead.fewest == 0:
                    break
                agreed += ahead.fewest
            if made is None or not is_full:
                raise SupplyError(
                    f"uneven='{self.uneven}': this rank got {done} full batches, but Spark announced {agreed}"
                )
            position = made.position
            self._taken += self._batch_size
            yield Step(made.batch, position)
            done += 1
            # Otherwise it would hold its block during the next wait.
            del made
        if self.uneven == "pad":
            yield from self._divided(made, position)
        elif done == 0:
            self._require_a_step(ahead.without)

    def _divided(self, made: Made | None, position: str | None) -> Iterator[Step]:
        """The last batch of all ranks, which is not full. Each rank gets as many of its rows."""
        rank, ranks = _rank_and_ranks()
        position = position if made is None else made.position
        parts: list[Any] = [None if made is None else moved(made.batch, "cpu")]
        if ranks > 1:
            parts *= ranks
            with self._limited():
                distributed.all_gather_object(parts, parts[rank], self._group_of_cpu_tensors())
        found = [part for part in parts if part is not None]
        if not found:
            return
        whole = Batch((name, joined([part[name] for part in found])) for name in found[0])
        rows = size_of(whole)
        share = -(-rows // ranks)
        begin, end = rank * share, (rank + 1) * share
        self.repeated += end - max(begin, min(rows, end))
        batch = _rows_of(whole, torch.arange(begin, end) % rows)
        yield Step(moved(batch, self.device), position)

    def _require_a_step(self, without: int) -> None:
        if self.needs_a_step and self._is_whole:
            raise SupplyError(
                f"uneven='drop' leaves no step: rank {without} has fewer than {self._batch_size} rows (batch_size), so "
                "all rows would be dropped: use uneven='pad', a smaller batch_size, or fewer ranks"
            )

    def _padded(self, batches: Iterator[Made], last: Batch | None, position: str | None) -> Iterator[Step]:
        done, known_until, size = 0, self._counted, self._batch_size
        asked_at, answers = 0, None
        while size == self._batch_size:
            made = next(batches, None)
            if made is not None:
                # The program may change what it gets. Only the last batch of a block can be the one to repeat.
                last, position = made.batch if made.left else copied(made.batch), made.position
            # What this rank has is sure to come. So it waits for the others' answers only when it has taken that.
            while done == known_until:
                if answers is None:
                    rows = 0 if made is None else size_of(made.batch)
                    own = 1 + made.left // size if made is not None and rows == size else 0
                    asked_at, answers = done, self._begin_agreement(own, 0 if own else rows, last is not None)
                    # At the first step it waits at once: a rank that has nothing to repeat needs this one's batch.
                    known_until += own if done else 0
                else:
                    ahead, answers = answers(), None
                    if ahead.most == ahead.rest == 0:
                        return
                    known_until = asked_at + max(1, ahead.most)
                    if ahead.most == 0:
                        # No rank has a full batch, so all are at their last one.
                        size = ahead.rest
                    if not ahead.all_repeat:
                        last = self._shared(last, ahead.giver)
            if last is None:
                raise SupplyError("uneven='pad': this rank got no row, but Spark announced some: persist the data")
            yield Step(self._filled(last, made, size), position, last)
            done += 1
            del made

    def _shared(self, last: Batch | None, giver: int) -> Batch:
        """Of a rank that has nothing to repeat, the giver's batch."""
        shared: list[Any] = [moved(last, "cpu") if last is not None and distributed.get_rank() == giver else None]
        group = self._group_of_cpu_tensors()
        with self._limited():
            distributed.broadcast_object_list(shared, giver, group)
        return moved(shared[0], self.device) if last is None else last

    def _filled(self, last: Batch, made: Made | None, size: int) -> Batch:
        """The batch, or the last one if there is none, with rows repeated up to that size."""
        rows = 0 if made is None else size_of(made.batch)
        self.repeated += size - rows
        if made is not None and rows == size:
            return made.batch
        return _rows_of(last, torch.arange(size) % size_of(last))

    def _begin_agreement(self, mine: int, rest: int, repeats: bool) -> Callable[[], _Ahead]:
        """A function that waits for the answers of all ranks.

        mine: the full batches that this rank certainly has. rest: the rows of its last batch, if it has none.
        repeats: whether it has a batch, or one to repeat.
        """
        rank, ranks = _rank_and_ranks()
        values = torch.tensor([mine, -mine, -rest, ranks if mine else rank, rank if repeats else ranks, int(repeats)])
        wait = self._begin_reduce(values)

        def ahead() -> _Ahead:
            wait()
            fewest, most, rest, without, giver, all_repeat = values.tolist()
            return _Ahead(fewest, -most, -rest, without, giver, bool(all_repeat))

        return ahead

    def _begin_reduce(self, values: torch.Tensor) -> Callable[[], None]:
        """Makes them the least values of all ranks. Returns a function that waits for that."""
        if not _is_initialized() and _ranks_of_launcher() > 1:
            raise SupplyError(
                f"uneven='drop' and 'pad' need torch.distributed for {_ranks_of_launcher()} ranks: initialize it "
                "before the first epoch, and destroy it after the last one (docs/ROWS.md), or set uneven='keep'"
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
        group = self._group or self._made()
        if group is None:
            group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=self._limit))
            self._made = weakref.ref(group)
        return group


def _rows_of(batch: Batch, indices: torch.Tensor) -> Batch:
    return Batch((name, taken(values, indices)) for name, values in batch.items())


def _rank_and_ranks() -> tuple[int, int]:
    return (distributed.get_rank(), distributed.get_world_size()) if _is_initialized() else (0, 1)


def _is_initialized() -> bool:
    return bool(distributed.is_available() and distributed.is_initialized())


def _ranks_of_launcher() -> int:
    return next((int(os.environ[name]) for name in _SIZES if name in os.environ), 1)
