"""The ranks of a Supplier: of one call, or kept from call to call within its `with` block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from supply.ranks.messages import Stop
from supply.spark.launcher import Launcher
from supply.spark.placement import fits, warn_of_busy_slots
from supply.spark.rank_pool import END_SECONDS, RankPool
from supply.spark.sessions import ClassicSession, Session
from supply.spark.turns import Idle, Turns, slots_for_run, turns_of

# A call of several threads at a time.
_ONE = {"call": 1}


@dataclass
class Wanted:
    """Ranks that a call needs.

    make_launcher: of them. tasks_per_rank: pinned tasks that feed a rank. environment: for the ranks. start_timeout: as
    of Supplier.run.
    """

    session: Session
    make_launcher: Callable[[], Launcher]
    ranks: int
    folder: str
    tasks_per_rank: int
    environment: Mapping[str, str]
    start_timeout: float


class WarmRanks:
    """Ranks from call to call. idle_timeout: seconds after which they end if no call comes."""

    def __init__(self, idle_timeout: float) -> None:
        self.idle_timeout = idle_timeout
        self._calls = Turns()
        self._kept: _Kept | None = None
        self._keeps = False

    def open(self) -> bool:
        """From now on they stay after a call. False: they did already."""
        was_open, self._keeps = self._keeps, True
        return not was_open

    def close(self) -> None:
        """Ends them, after a call that uses them. The next ones end with their call."""
        with self._calls.turn(_ONE, lambda: _ONE):
            self._keeps = False
            self._end()

    @contextlib.contextmanager
    def of_call(self, wanted: Wanted) -> Iterator[RankPool]:
        """Ranks for a call, with Spark's slots for it. Calls of several threads take turns, if ranks stay."""
        if not self._keeps:
            with _new(wanted) as pool:
                yield pool
                pool.close()
            return
        with self._calls.turn(_ONE, lambda: _ONE), contextlib.ExitStack() as uses:
            pool = uses.enter_context(self._of_earlier_call(wanted)) or uses.enter_context(_new(wanted))
            yield pool
            # Another thread may have closed the Supplier meanwhile.
            if pool.has_failed or not self._keeps:
                pool.close()
            else:
                self._kept = _Kept(pool, wanted, self.idle_timeout)

    @contextlib.contextmanager
    def _of_earlier_call(self, wanted: Wanted) -> Iterator[RankPool | None]:
        """None: there are none, or they have ended, or do not fit. Then none are left."""
        kept = self._kept
        if kept is None:
            yield None
            return
        needed = kept.pool.launcher.slots_of_hosts(wanted.tasks_per_rank)
        if not (kept.are_for(wanted) and fits(wanted.session, needed)):
            self._end()
            yield None
            return
        with contextlib.ExitStack() as uses:
            are_there = uses.enter_context(slots_for_run(wanted.session, needed, kept.idle))
            kept.timer.cancel()
            self._kept = None
            if are_there:
                uses.enter_context(_ended_by_error(kept.pool))
                if kept.pool.answers():
                    yield kept.pool
                    return
                kept.pool.stop(Stop())
                kept.pool.close()
        yield None

    def _end(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.timer.cancel()
            kept.turns.end(kept.idle)
            kept.idle.ended.wait(2 * END_SECONDS)


class _Kept:
    """Ranks that wait for a call."""

    def __init__(self, pool: RankPool, wanted: Wanted, seconds: float) -> None:
        self.pool = pool
        self._started_for = _what_counts(wanted)
        self.turns = turns_of(pool.session)
        self.idle = Idle(pool.launcher.slots_of_hosts(0), pool.close)
        self.turns.wait_for_call(self.idle)
        self.timer = threading.Timer(seconds, self.turns.end, [self.idle])
        self.timer.daemon = True
        self.timer.start()

    def are_for(self, wanted: Wanted) -> bool:
        mine, other = self.pool.session, wanted.session
        are_same = mine.spark is other.spark if mine.is_connect else mine.application == other.application
        return are_same and self._started_for == _what_counts(wanted)


def _what_counts(wanted: Wanted) -> tuple[Any, ...]:
    """What ranks have got when they started: their environment, and what addPyFile sends to Python."""
    session = wanted.session
    files = session.context._python_includes if isinstance(session, ClassicSession) else ()
    return dict(wanted.environment), tuple(files)


@contextlib.contextmanager
def _new(wanted: Wanted) -> Iterator[RankPool]:
    """Starts ranks. They end if the block raises."""
    launcher = wanted.make_launcher()
    reserve = (wanted.session, wanted.tasks_per_rank, wanted.start_timeout)
    launcher.reserve(*reserve)
    with slots_for_run(wanted.session, launcher.slots_of_hosts(wanted.tasks_per_rank)):
        # Executors may have come and gone meanwhile.
        pairs = launcher.reserve(*reserve)
        warn_of_busy_slots(wanted.session, launcher.slots(wanted.tasks_per_rank))
        pool = RankPool(wanted.session, launcher, wanted.ranks, pairs, wanted.folder)
        with _ended_by_error(pool):
            pool.start(wanted.environment)
            yield pool


@contextlib.contextmanager
def _ended_by_error(pool: RankPool) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if not pool.has_failed:
            pool.stop(Stop())
        pool.close()
        raise
