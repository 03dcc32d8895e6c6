"""Which rank waits for whom, and for how long; and why a collective hangs if ranks have unequal numbers of batches."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from spark_supplier.driver.failures import Cause, Priority
from spark_supplier.node.messages import Loop, Progress


class Uneven(NamedTuple):
    """Which rank has left the others, and what to do."""

    text: str
    remedy: str


def who_waits(loops: Mapping[int, Loop], returned: Container[int]) -> Uneven | None:
    """Names a rank that has had all its batches, or has returned, and one that has more. None: there are none.

    loops: by rank. returned: the ranks whose function has returned.
    """
    ended = {rank: loop for rank, loop in loops.items() if loop.has_all}
    busy = {rank: loop for rank, loop in loops.items() if not loop.has_all and rank not in returned}
    for first, had in sorted(ended.items(), key=lambda each: each[1].batches):
        for other, loop in busy.items():
            if loop.epoch == had.epoch and loop.batches > had.batches:
                does = "returned" if first in returned else "left the epoch"
                return Uneven(
                    f"rank {first} has had all its rows of epoch {had.epoch} ({had.batches} batches) and has {does}, "
                    f"while rank {other} is in batch {loop.batches}",
                    "With uneven='keep' ranks make different numbers of steps, and a collective (all_reduce, "
                    "DistributedDataParallel) waits for all ranks: set uneven='pad' or 'drop'",
                )
    for first, had in loops.items():
        for other, loop in busy.items():
            if first in returned and not had.has_all and (loop.epoch, loop.batches) >= (had.epoch, had.batches):
                return Uneven(
                    f"rank {first} has returned after {had.batches} batches of epoch {had.epoch}, while rank {other} "
                    f"has had {loop.batches} of epoch {loop.epoch}",
                    "A collective (all_reduce, DistributedDataParallel, uneven='pad') waits for all ranks: let all "
                    "leave the loop after the same batch",
                )
    return None


def explain_uneven(cause: Cause, uneven: Uneven | None) -> None:
    """Adds what who_waits() says to the text of a hang, and of a collective that has failed."""
    if uneven is None or cause.priority < Priority.PAIR:
        return
    cause.error.args = (f"{str(cause.error).rstrip()}\n{uneven.text}. {uneven.remedy}",)


# A rank that waits for a shorter time has no part in what the others do.
_LONG_WAIT_SECONDS = 5
# The driver itself was suspended, or its terminal was.
_GAP_SECONDS = 5
_LISTED = 8


class RankWatch:
    """The ranks of one run. exchanges: whether they exchange elements."""

    def __init__(self, ranks: int, epochs: int, exchanges: bool) -> None:
        self._ranks = range(ranks)
        self._epochs = epochs
        self._exchanges = exchanges
        # By rank: those with an equal value read one ring, and wait for Spark if one of them stalls.
        self.groups: dict[int, Any] = {}
        # How many the call has: rank r has number r % functions, and does not wait for those of the others.
        self.functions = 1
        self._progress: dict[int, Progress] = {}
        self._returned: set[int] = set()
        now = time.monotonic()
        # A rank reports every change.
        self._since = dict.fromkeys(self._ranks, now)
        # No wait is counted from before this time, and no rank stalls before the other one.
        self._begun = now
        self._clock = now
        self._checked = now

    def note(self, progress: Progress) -> None:
        self._progress[progress.rank] = progress
        self._since[progress.rank] = time.monotonic()

    def note_return(self, rank: int) -> None:
        self._returned.add(rank)

    def restart(self) -> None:
        """All ranks may have been held up until now."""
        self._begun = self._clock = time.monotonic()

    def stalled(self, seconds: float) -> list[int]:
        """The ranks that have computed for longer. Call it often. While a rank waits for Spark, time does not count."""
        now = time.monotonic()
        if now - self._checked > _GAP_SECONDS or self._await_spark(now, min(seconds / 2, _LONG_WAIT_SECONDS)):
            self._clock = now
        self._checked = now
        late = [
            rank
            for rank in self._present()
            if self._waits_for(rank) != "Spark" and now - max(self._since[rank], self._clock) > seconds
        ]
        return [rank for rank in late if self._waits_for(rank) is None] or late

    def waits(self, seconds: float) -> tuple[float, str]:
        """The longest wait, and all that last for this time, as a text. Any thread may ask."""
        now = time.monotonic()
        groups: dict[str, list[int]] = {}
        for rank in self._ranks:
            if self._seconds(rank, now) >= seconds and (does := self._does(rank)):
                groups.setdefault(does, []).append(rank)
        longest = max((self._seconds(rank, now) for ranks in groups.values() for rank in ranks), default=0.0)
        text = "; ".join(f"{named(ranks)}: {does}" for does, ranks in groups.items())
        uneven = self.uneven()
        return longest, f"{text} ({uneven.text})" if text and uneven else text

    def uneven(self) -> Uneven | None:
        """As who_waits(), of the ranks of one function."""
        loops = {rank: progress.loop for rank, progress in dict(self._progress).items() if progress.loop is not None}
        for number in range(self.functions):
            own = {rank: loop for rank, loop in loops.items() if rank % self.functions == number}
            if found := who_waits(own, self._returned):
                return found
        return None

    def _seconds(self, rank: int, now: float) -> float:
        """Since the rank has reported a change."""
        return now - max(self._since[rank], self._begun)

    def _does(self, rank: int) -> str | None:
        if waits_for := self._waits_for(rank):
            return f"waiting for {waits_for}"
        if rank in self._returned:
            return None
        progress = self._progress.get(rank)
        if progress is not None and progress.epoch >= self._epochs:
            return "computing after the last row"
        return "computing, while Spark waits"

    def _await_spark(self, now: float, seconds: float) -> bool:
        """Whether one waits for Spark for that time. If they exchange elements, it may wait for another one."""
        computing = [rank for rank in self._present() if self._waits_for(rank) != "Spark"]
        if self._exchanges and computing:
            return False
        held = {self.groups.get(rank, rank) for rank in computing}
        waiting = [rank for rank in self._present() if self.groups.get(rank, rank) not in held]
        return any(now - self._since[rank] > seconds for rank in waiting)

    def _present(self) -> list[int]:
        return [rank for rank in self._ranks if rank not in self._returned]

    def _waits_for(self, rank: int) -> str | None:
        progress = self._progress.get(rank)
        return None if progress is None else progress.waits_for


def named(ranks: Sequence[int]) -> str:
    """As the subject of a sentence."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    more = f" and {len(ranks) - _LISTED} more" if len(ranks) > _LISTED else ""
    return f"ranks {', '.join(map(str, ranks[:_LISTED]))}{more}"
