"""Ranks, and what lives as long as they do: their connections, starters, host placement and environment."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_supplier.driver.failures import Cause
from spark_supplier.driver.hub import Hub, Peer
from spark_supplier.driver.launcher import Launcher
from spark_supplier.driver.progress import Printer
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import STARTS_RANKS, JobEnded, SparkJobs
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

    def start(self, environment: Mapping[str, str]) -> None:
        """Starts the ranks with this environment, within the turn that has their slots."""
        self.hub = self._ends.enter_context(contextlib.closing(Hub(self.session, self.files.name, self._receive)))
        self.launcher.start(self.files, {**environment, **self.hub.environment()}, self.jobs, self.post)

    def files_of_call(self, kinds: tuple[str, ...], ring: int | None, block: int | None) -> RunFiles:
        self._calls += 1
        return self.files.of_call(self._calls, kinds, self._pairs, ring, block)

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
