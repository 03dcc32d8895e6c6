"""Where a rank's time goes: waits, batches, copies and the program's own code, by epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeVar

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class EpochStatistics:
    """How one rank spent the time of one epoch. All but the first two are seconds, and their sum is the epoch's.

    Attributes
    ----------
    epoch : int
        Its number, from 0.
    rows : int
        Rows that the loop has received.
    waiting_for_spark : float
        Until a block was there. With an exchange, the rounds in which ranks exchange rows are in it.
    waiting_for_ranks : float
        Until the ranks had agreed on their steps (uneven="drop" and "pad"). Collectives of the program are the
        program's.
    batching : float
        Making batches.
    program : float
        The program's own code, from one batch to the next: also transform, collate_fn and the workers of a DataLoader,
        and what the loop does between two epochs.
    copying : float
        Starting copies to a device (to()), and waiting for them.
    """

    epoch: int
    rows: int
    waiting_for_spark: float
    waiting_for_ranks: float
    batching: float
    program: float
    copying: float


@dataclass
class Seconds:
    """Totals of all data sets of a rank.

    A question is a request of the loop for a batch, and the batch is its answer. inside: from questions to their
    answers. last: the last answer.
    """

    inside: float = 0.0
    spark: float = 0.0
    ranks: float = 0.0
    copying: float = 0.0
    last: float = 0.0

    def answer(self, asked: float) -> None:
        """The loop has its answer. asked: when it asked, by perf_counter()."""
        self.last = now = perf_counter()
        self.inside += now - asked

    def timed(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """The same items, of which each is an answer."""
        return _Timed(self, items)


class _Timed(Iterator[_Item]):
    """No generator: that would keep the last item, which may hold a slot of the ring, until it is asked for another."""

    def __init__(self, seconds: Seconds, items: Iterator[_Item]) -> None:
        self._seconds = seconds
        self._items = items

    def __next__(self) -> _Item:
        asked = perf_counter()
        try:
            return next(self._items)
        finally:
            self._seconds.answer(asked)


class EpochTimes:
    """Divides the seconds of a rank among the epochs of a data set. Any thread may ask for the rows."""

    def __init__(self) -> None:
        self.seconds = Seconds()
        self.received = 0
        self._ended: list[EpochStatistics] = []
        self._epoch: int | None = None
        self._since = 0.0
        self._before = Seconds()
        self._lock = threading.Lock()

    def ask(self) -> None:
        """The loop asks for its next epoch. This ends the one before."""
        now = perf_counter()
        with self._lock:
            if self._epoch is not None:
                self._ended.append(self._row(self._epoch, now))
            self._epoch, self.received = None, 0
            self._since, self._before = now, replace(self.seconds)

    def begin(self, epoch: int) -> None:
        """The loop has got it."""
        self._epoch = epoch

    def rows(self, first: int = 0) -> list[EpochStatistics]:
        """Of the epochs that have begun, from that one of them on."""
        with self._lock:
            rows = self._ended[first:]
            if self._epoch is not None:
                rows.append(self._row(self._epoch, self.seconds.last))
        return rows

    def _row(self, epoch: int, until: float) -> EpochStatistics:
        now, before = self.seconds, self._before
        inside, spark = now.inside - before.inside, now.spark - before.spark
        ranks, copying = now.ranks - before.ranks, now.copying - before.copying
        return EpochStatistics(
            epoch=epoch,
            rows=self.received,
            waiting_for_spark=spark,
            waiting_for_ranks=ranks,
            batching=max(0.0, inside - spark - ranks - copying),
            program=max(0.0, until - self._since - inside),
            copying=copying,
        )
