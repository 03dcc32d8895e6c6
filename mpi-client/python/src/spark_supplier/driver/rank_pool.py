"""Ranks, and what lives as long as they do: their connections, starters, host placement and environment."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from spark_supplier.driver.failures import Cause, NotAgain
from spark_supplier.driver.hub import Hub, Peer
from spark_supplier.driver.launcher import Launcher
from spark_supplier.driver.placement import keep_slots, warn_of_busy_slots
from spark_supplier.driver.progress import Printer
from spark_supplier.driver.sessions import ClassicSession, Session
from spark_supplier.driver.spark_jobs import STARTS_RANKS, JobEnded, SparkJobs
from spark_supplier.driver.turns import Turn, cancellation, one_at_a_time
from spark_supplier.errors import RunError
from spark_supplier.node.messages import (
    Begin,
    CallEnded,
    CallReady,
    End,
    Imbalance,
    Measured,
    Output,
    Progress,
    RankIdle,
    RankStarted,
    SlotsWanted,
    Stop,
)
from spark_supplier.node.run_files import RunFiles

# How long ranks and jobs may take to end.
END_SECONDS = 30
# A wait for longer would delay Ctrl-C.
TICK_SECONDS = 0.2
# How long ranks that wait for a call may take to say that they are there.
_ANSWER_SECONDS = 10

_log = logging.getLogger("spark_supplier")


class RankPool:
    """Ranks that serve one call after the other. All calls are on the thread of the call that uses it.

    files: of the ranks, with their name at the hub. pairs: as of RunFiles, for the files of the calls.
    """

    def __init__(self, session: Session, launcher: Launcher, ranks: int, files: RunFiles, pairs: int = 1) -> None:
        self.session = session
        self.launcher = launcher
        self.ranks = ranks
        self.files = files
        self.printer = Printer()
        self.jobs = SparkJobs(session, self.files.name, self.post)
        # Of this call: the ranks, and those that wait for the next one; keepers that have begun it, and ended it.
        self.started: dict[int, tuple[Peer, RankStarted]] = {}
        self.idle: set[int] = set()
        self.keepers_ready = 0
        self.keepers_ended = 0
        # Whether a rank or a keeper has gone.
        self.is_broken = False
        # Whether the ranks have been ended because of a failure.
        self.has_failed = False
        # Whether they did not start because Spark had no executor where they were placed.
        self.are_misplaced = False
        # Another run needs the slots of ranks that wait for a call. It is called on a thread of the hub.
        self.wanted: Callable[[], None] = lambda: None
        self._pairs = pairs
        self._calls = 0
        self._peers: dict[int, Peer] = {}
        self._events: queue.SimpleQueue[tuple[Peer | None, Any]] = queue.SimpleQueue()
        self._ends = contextlib.ExitStack()

    def start(self, environment: Mapping[str, str], tasks_per_rank: int) -> None:
        """Starts the ranks with this environment, within the turn that has their slots."""
        self.hub = self._ends.enter_context(contextlib.closing(Hub(self.session, self.files.name, self._receive)))
        needed = self.launcher.slots(tasks_per_rank)
        keep_slots(self.session, self.files.name, needed, self.launcher.needs(tasks_per_rank).slots)
        self.launcher.start(self.files, {**environment, **self.hub.environment()}, self.jobs, self.post)

    def files_of_call(self, kinds: tuple[str, ...], ring: int | None, block: int | None, share: int | str) -> RunFiles:
        self._calls += 1
        return self.files.of_call(self._calls, kinds, self._pairs, ring, block, share)

    def answers(self) -> bool:
        """Whether all ranks wait for a call. They send RankStarted again."""
        self.started.clear()
        self.idle.clear()
        self.keepers_ready = self.keepers_ended = 0
        for rank in self._peers.values():
            rank.send(Begin(self.files))
        end = time.monotonic() + _ANSWER_SECONDS
        while len(self.started) < self.ranks:
            if event := self.next_event():
                peer, message = event
                if isinstance(message, RankStarted):
                    self.handle(peer, message)
                elif not _is_late(message):
                    # The launcher knows then which processes are gone.
                    self.handle(peer, message)
                    return False
            if time.monotonic() > end:
                return False
        return True

    def post(self, message: Any) -> None:
        """Any thread may call it."""
        self._events.put((None, message))

    def next_event(self) -> tuple[Peer | None, Any] | None:
        """None: none comes soon."""
        with contextlib.suppress(queue.Empty):
            return self._events.get(timeout=TICK_SECONDS)
        return None

    @property
    def has_events(self) -> bool:
        return not self._events.empty()

    def handle(self, peer: Peer | None, message: Any) -> Cause | None:
        """Takes each message of the ranks. Returns a failure that it reports."""
        if isinstance(message, RankStarted) and peer is not None:
            if not self.launcher.takes(peer, message):
                return None
            self.started[message.rank] = peer, message
            self._peers[message.rank] = peer
        elif isinstance(message, RankIdle):
            self.idle.add(message.rank)
        elif isinstance(message, CallReady):
            self.keepers_ready += 1
        elif isinstance(message, CallEnded):
            self.keepers_ended += 1
        cause = self.launcher.handle(peer, message)
        is_gone = message is None and peer in self._peers.values()
        is_of_starters = isinstance(message, JobEnded) and message.name == STARTS_RANKS
        if cause is not None or is_gone or is_of_starters or self.launcher.lost_host is not None:
            self.is_broken = True
        return cause

    def end_call(self, keepers: Iterable[Peer], keep_results: bool) -> bool:
        """When all ranks have returned: until they wait, all that they have printed is here, and the files are gone.

        False: a rank or a keeper has gone, or one of these takes too long.
        """
        are_idle = self._await(lambda: len(self.idle) == self.ranks or self.is_broken)
        asked = [keeper.send(End(keep_results)) for keeper in keepers]
        have_ended = self._await(lambda: self.keepers_ended == len(asked) or self.is_broken)
        return are_idle and have_ended and not self.is_broken

    def _await(self, is_done: Callable[[], bool], seconds: float = END_SECONDS) -> bool:
        """Handles messages until it is. False: it is not after that time, in which the terminal took text."""
        end = time.monotonic() + seconds
        while not is_done() and (self.has_events or time.monotonic() < end):
            if event := self.next_event():
                self.handle(*event)
            if self.printer.is_blocked:
                end = time.monotonic() + seconds
        return is_done()

    def stop(self, stop: Stop) -> None:
        """Ends the ranks. A rank that hangs prints first where it is. Their starters' job may still run."""
        self.has_failed = self.has_failed or not stop.idle
        self.launcher.stop(stop)
        self._await(lambda: self.launcher.has_ended)

    def close(self) -> None:
        """When it returns, nothing is left of the ranks."""
        try:
            if not self.has_failed:
                self.stop(Stop(idle=True))
            if not (self.jobs.join(0 if self.has_failed else END_SECONDS) or self.jobs.cancel(END_SECONDS)):
                _log.warning("Spark's jobs of %s have not ended within %d s", self.files.name, END_SECONDS)
        finally:
            self._ends.close()
            self.files.remove()

    def _receive(self, peer: Peer, message: Any) -> None:
        """On a thread of the peer. If the terminal is paused, printing waits, then the peer, and at last the rank."""
        if isinstance(message, SlotsWanted):
            self.wanted()
            return
        if not isinstance(message, Output):
            self._events.put((peer, message))
            return
        try:
            self._print(f"[rank {message.rank}] {message.line}", message.stream)
        except Exception as error:
            self.post(error)

    def _print(self, line: str, stream: str) -> None:
        self.printer.print(line, stream)


def _is_late(message: Any) -> bool:
    """Whether it is of an earlier call."""
    is_of_data = isinstance(message, JobEnded) and message.name != STARTS_RANKS
    return is_of_data or isinstance(message, (Progress, Measured, Imbalance))


# How often a call places its ranks, at most.
_PLACEMENTS = 3

_Returned = TypeVar("_Returned")


@dataclass
class Wanted:
    """Ranks that a call needs.

    make_launcher: of them. tasks_per_rank: pinned tasks that feed a rank. environment: for the ranks. start_timeout: as
    of Supplier.run. share: how many ranks are a group.
    """

    session: Session
    make_launcher: Callable[[], Launcher]
    ranks: int
    folder: str
    tasks_per_rank: int
    environment: Mapping[str, str]
    start_timeout: float
    share: int


class WarmRanks:
    """Ranks from call to call. idle_timeout: seconds after which they end if no call comes."""

    def __init__(self, idle_timeout: float) -> None:
        self.idle_timeout = idle_timeout
        # A call of several threads at a time.
        self._calls = threading.Lock()
        # That has a call now.
        self._thread: int | None = None
        self._kept: _Kept | None = None
        self._keeps = self._is_closed = False

    def check_open(self) -> None:
        if self._is_closed:
            raise NotAgain("this Supplier is closed: make another one")

    def open(self) -> bool:
        """From now on they stay after a call. False: they did already."""
        self.check_open()
        was_open, self._keeps = self._keeps, True
        return not was_open

    def close(self) -> None:
        """Ends them, after a call that uses them. There are no next ones."""
        self._check_thread()
        self._is_closed = True
        with self._calls:
            self._keeps = False
            self._end()

    def _check_thread(self) -> None:
        if self._thread == threading.get_ident():
            raise NotAgain("this Supplier is in a call of this thread: raise in on_report to end it")

    def call(self, wanted: Wanted, use: Callable[[RankPool], _Returned]) -> _Returned:
        """What use() returns, with ranks for one call.

        If executors have gone between the placement and the start, it places the ranks again: nothing has run yet.
        """
        placements = 1
        while True:
            pool: RankPool | None = None
            try:
                with self._of_call(wanted) as pool:
                    return use(pool)
            except RunError as error:
                if pool is None or not pool.are_misplaced or placements == _PLACEMENTS:
                    raise
                _log.warning("%s. The ranks are placed again (%d of %d)", error, placements, _PLACEMENTS - 1)
            placements += 1

    @contextlib.contextmanager
    def _of_call(self, wanted: Wanted) -> Iterator[RankPool]:
        """Ranks for a call, with Spark's slots for it. Calls of several threads take turns, if ranks stay."""
        if not self._keeps:
            with _new(wanted) as ranks:
                yield ranks.pool
                ranks.pool.close()
            return
        self._check_thread()
        with one_at_a_time(self._calls, cancellation(wanted.session)), self._in_call(), contextlib.ExitStack() as uses:
            earlier = uses.enter_context(self._of_earlier_call(wanted))
            ranks = uses.enter_context(_new(wanted)) if earlier is None else earlier
            yield ranks.pool
            # Another thread may have closed the Supplier meanwhile.
            if ranks.pool.has_failed or not self._keeps:
                ranks.pool.close()
            else:
                self._kept = _Kept(ranks, wanted, self.idle_timeout)

    @contextlib.contextmanager
    def _in_call(self) -> Iterator[None]:
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = None

    @contextlib.contextmanager
    def _of_earlier_call(self, wanted: Wanted) -> Iterator[_Ranks | None]:
        """None: there are none, or they have ended, or do not fit. Then none are left."""
        kept = self._kept
        if kept is None or not kept.are_for(wanted):
            self._end()
            yield None
            return
        pool, turn = kept.ranks.pool, kept.ranks.turn
        with contextlib.ExitStack() as uses:
            is_theirs = uses.enter_context(turn.held(pool.launcher.needs(wanted.tasks_per_rank)))
            self._kept = None
            # is_theirs: the hub has not promised their slots to a run of another client. take(): this process, whose
            # timer ends them, has not begun to.
            if is_theirs and kept.take():
                uses.enter_context(_ended_by_error(pool, turn))
                if pool.answers():
                    yield kept.ranks
                    return
                pool.stop(Stop())
                pool.close()
            else:
                kept.end()
        yield None

    def _end(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.end()


@dataclass
class _Ranks:
    pool: RankPool
    turn: Turn


class _Kept:
    """Ranks that wait for a call. Either a call takes them, or they end: after some seconds, or for another run."""

    def __init__(self, ranks: _Ranks, wanted: Wanted, seconds: float) -> None:
        self.ranks = ranks
        self._started_for = _what_counts(wanted)
        self._lock = threading.Lock()
        self._claimed: str | None = None
        self._ended = threading.Event()
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True
        ranks.pool.wanted = self._end_soon
        ranks.turn.keep(ranks.pool.launcher.needs(0))
        self._timer.start()

    def take(self) -> bool:
        """For a call. False: they are ending."""
        return self._claim("call")

    def _claim(self, what: str) -> bool:
        self._timer.cancel()
        with self._lock:
            is_free, self._claimed = self._claimed is None, self._claimed or what
        return is_free

    def end(self) -> None:
        """Any thread may call it. When it returns, they have ended, unless a call has them."""
        if self._claim("end"):
            try:
                self.ranks.pool.close()
            finally:
                self.ranks.turn.release()
                self._ended.set()
        elif self._claimed == "end":
            self._ended.wait(2 * END_SECONDS)

    def _end_soon(self) -> None:
        threading.Thread(target=self.end, name="supply: end idle ranks", daemon=True).start()

    def are_for(self, wanted: Wanted) -> bool:
        mine, other = self.ranks.pool.session, wanted.session
        are_same = mine.spark is other.spark if mine.is_connect else mine.application == other.application
        return are_same and self._started_for == _what_counts(wanted)


def _what_counts(wanted: Wanted) -> tuple[Any, ...]:
    """What ranks have got when they started: their number and groups, their environment, and what addPyFile sends."""
    session = wanted.session
    files = session.context._python_includes if isinstance(session, ClassicSession) else ()
    return wanted.ranks, wanted.share, dict(wanted.environment), tuple(files)


@contextlib.contextmanager
def _new(wanted: Wanted) -> Iterator[_Ranks]:
    """Starts ranks. They end if the block raises."""
    launcher = wanted.make_launcher()
    reserve = (wanted.session, wanted.tasks_per_rank, wanted.start_timeout)
    launcher.reserve(*reserve)
    turn = Turn(wanted.session, f"supply-{os.urandom(6).hex()}")
    with turn.held(launcher.needs(wanted.tasks_per_rank)):
        # Executors may have come and gone meanwhile.
        pairs = launcher.reserve(*reserve)
        warn_of_busy_slots(wanted.session, launcher.slots(wanted.tasks_per_rank))
        launcher.use(turn.gpus)
        pool = RankPool(wanted.session, launcher, wanted.ranks, RunFiles(wanted.folder, turn.run), pairs)
        with _ended_by_error(pool, turn):
            pool.start(wanted.environment, wanted.tasks_per_rank)
            yield _Ranks(pool, turn)


@contextlib.contextmanager
def _ended_by_error(pool: RankPool, turn: Turn) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        turn.note(error)
        if not pool.has_failed:
            pool.stop(Stop())
        pool.close()
        raise
