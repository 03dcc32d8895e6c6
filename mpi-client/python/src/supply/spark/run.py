"""One run of Supplier.run, on the driver: starts everything, collects results, and ends everything."""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import time
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from supply.errors import RunError, RunTimeoutError
from supply.ranks.environment import plain_host
from supply.ranks.messages import (
    Failure,
    Imbalance,
    OrderDependent,
    Output,
    Progress,
    RankReady,
    RankStarted,
    Result,
    Stop,
    Work,
)
from supply.ranks.run_files import RunFiles
from supply.spark import failures
from supply.spark.cancellable import run_cancellable
from supply.spark.failures import Cause, Priority
from supply.spark.hub import Hub, Peer
from supply.spark.launcher import Launcher
from supply.spark.placement import what_holds_slots
from supply.spark.progress import ProgressBar
from supply.spark.rank_watch import RankWatch, explain_uneven, named
from supply.spark.results import RunResult, warn_of_join_keys
from supply.spark.sessions import Session
from supply.spark.spark_jobs import STARTS_RANKS, JobEnded, SparkJobs, Supplied, warn

# How long other reports may follow a first failure, and a cause its consequences.
_SETTLE_SECONDS = 2
_EXPLAIN_SECONDS = 10
# How long everything may take to end, and tasks by themselves.
_END_SECONDS = 30
_OWN_END_SECONDS = 5
# A wait for longer would delay Ctrl-C.
_TICK_SECONDS = 0.2

# The name of the ranks' result.
_RESULTS = "results"
_ENDED_WITH_TASK = "the ranks have ended with Spark's task that keeps them"

_log = logging.getLogger("supply.spark")


@dataclass
class Limits:
    """In seconds, as of Supplier.run."""

    start_timeout: float
    stall_timeout: float | None


class Run:
    """payload: a pickled Job. reads_results: whether the ranks write rows."""

    def __init__(
        self,
        session: Session,
        launcher: Launcher,
        ranks: int,
        files: RunFiles,
        supplied: list[Supplied],
        payload: bytes,
        backend: str | None,
        limits: Limits,
        environment: dict[str, str],
        reads_results: bool,
    ) -> None:
        self._session = session
        self._launcher = launcher
        self._ranks = ranks
        self._files = files
        self._supplied = supplied
        self._payload = payload
        self._backend = backend
        self._limits = limits
        self._environment = environment
        self._reads_results = reads_results
        self._rows: Any = None
        self._events: queue.SimpleQueue[tuple[Peer | None, Any]] = queue.SimpleQueue()
        self._jobs = SparkJobs(session, files.name, lambda ended: self._events.put((None, ended)))
        self._supplies = False
        self._hosts: dict[str, list[int]] = {}
        self._started: dict[int, tuple[Peer, RankStarted]] = {}
        self._ready: set[int] = set()
        options = supplied[0].options
        self._watch = RankWatch(ranks, int(options["epochs"]), options["shuffle"] == "all")
        self._results: dict[int, Result] = {}
        self._causes: list[Cause] = []
        self._lost_at: float | None = None
        self._is_local = session.is_local
        self._bar = ProgressBar(int(supplied[0].options["epochs"]))

    def result(self) -> Any:
        """Runs everything. Returns rank 0's result, or a RunResult if the ranks write rows.

        When it returns or raises, nothing is left but those rows.
        """
        with contextlib.ExitStack() as ends:
            ends.callback(self._bar.close)
            ends.callback(self._jobs.forget)
            ends.callback(lambda: self._files.remove(keep_results=self._rows is not None))
            self._hub = ends.enter_context(contextlib.closing(Hub(self._session, self._files.name, self._receive)))
            environment = {**self._environment, **self._hub.environment()}
            try:
                self._launcher.start(
                    self._files, environment, self._jobs, lambda message: self._events.put((None, message))
                )
                self._wait()
            except BaseException:
                self._stop()
                raise
        value = _unpickled(self._results[0].payload)
        return RunResult(value, self._rows) if self._reads_results else value

    def _wait(self) -> None:
        """Until every rank has returned a result, and every job has ended."""
        self._start_ranks()
        self._bar.waits = self._watch.waits
        limit = self._limits.stall_timeout
        while len(self._results) < self._ranks:
            self._handle_next()
            if self._bar.is_blocked:
                self._watch.restart()
            if limit is not None and (stalled := self._watch.stalled(limit)):
                text = (
                    f"{named(stalled)} took no rows and did not return for {limit:g} s (stall_timeout): their output "
                    "says where they were. If they were slow and not stuck, set stall_timeout larger"
                )
                self._causes.append(Cause(Priority.PAIR, RunTimeoutError(text)))
        if self._reads_results:
            self._rows = self._load_results()
            # The ranks have waited for this.
            self._stop()
            return
        if not all(result.at_end for result in self._results.values()):
            self._jobs.end_with_ranks()
            self._stop(_OWN_END_SECONDS)
        elif not (self._jobs.join(_END_SECONDS) and self._join_launcher()):
            self._stop()

    def _start_ranks(self) -> None:
        """Until all ranks have started, and have met."""
        limit = self._limits.start_timeout
        end = time.monotonic() + limit
        while len(self._started) < self._ranks:
            self._handle_next()
            if time.monotonic() > end:
                missing = f"{self._missing(self._started)} not started within {limit:g} s (start_timeout)"
                if not self._started and (jobs := what_holds_slots(self._session, 1)):
                    raise RunTimeoutError(
                        f"{missing}: tasks of other jobs hold Spark's slots: {jobs}. Wait for their end, or give Spark "
                        "more cores"
                    )
                raise RunTimeoutError(
                    f"{missing}: if nodes are slow, set start_timeout larger. If they cannot connect to the driver at "
                    f"{self._hub.host}, which the executors' logs say, set spark.driver.host"
                )
        first = self._started[0][1]
        # The machine may have lost the address by which Spark knows it.
        address = "127.0.0.1" if self._is_local else plain_host(first.host)
        for peer, _ in self._started.values():
            peer.send(Work(self._payload, (address, first.port), self._backend))
        while len(self._ready) < self._ranks:
            self._handle_next()
            if time.monotonic() > end:
                raise RunTimeoutError(
                    f"{self._missing(self._ready)} not met the others within {limit:g} s (start_timeout): if nodes are "
                    "slow, set start_timeout larger. If torch.distributed cannot connect from node to node, set "
                    "GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME in environment= of the Supplier"
                )
        self._watch.restart()

    def _load_results(self) -> Any:
        """The DataFrame of the rows that the ranks have written. It reads them where they are."""
        while not self._jobs.have_supplied():
            self._handle_next()
        options = {
            **self._file_options("train"), "ranks": self._ranks, "timeout": self._limits.start_timeout,
            "results": _RESULTS, "results-folder": self._files.results_folder, "hub-run": self._files.name,
        }  # fmt: skip
        reader = self._session.spark.read.format("supply").options(**options)

        def load() -> Any:
            loaded = reader.load()
            # Spark Connect asks the ranks only now.
            _ = loaded.schema
            return loaded

        return run_cancellable(self._session, load, run=self._files.name, part=_RESULTS)

    def _missing(self, present: Container[int]) -> str:
        missing = [str(rank) for rank in range(self._ranks) if rank not in present]
        return f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(missing)} have"

    def _handle_next(self) -> None:
        """As _handle_event(). Raises the cause if the run has failed, and supplies when the ranks are ready."""
        self._handle_event()
        if self._causes:
            self._settle()
            cause = failures.first(self._causes)
            explain_uneven(cause, self._watch.uneven())
            raise cause.error from cause.original
        if not self._supplies and (hosts := self._launcher.hosts):
            self._supply(hosts)

    def _settle(self) -> None:
        """Handles what follows a first failure."""
        begin = time.monotonic()
        while time.monotonic() - begin < (_EXPLAIN_SECONDS if self._is_unexplained() else _SETTLE_SECONDS):
            self._handle_event()

    def _is_unexplained(self) -> bool:
        """Whether the first cause is still to come."""
        if self._launcher.is_explaining or failures.first(self._causes).is_explained:
            return self._launcher.is_explaining
        in_collectives = {cause.rank for cause in self._causes if cause.priority == Priority.COLLECTIVE}
        reported = self._results.keys() | {cause.rank for cause in self._causes} - {None}
        # If Spark had failed, a rank would have been told.
        has_all = len(in_collectives) == self._ranks or (
            len(reported) == self._ranks and self._jobs.have_supplied() and self._events.empty()
        )
        return not has_all

    def _handle_event(self) -> None:
        """Handles the next event, if one comes soon."""
        with contextlib.suppress(queue.Empty):
            self._handle(*self._events.get(timeout=_TICK_SECONDS))
        if self._launcher.lost_host is not None:
            self._explain_loss(self._launcher.lost_host)

    def _explain_loss(self, host: str) -> None:
        """Spark retries the task that kept the ranks of that host, so its job has not ended. It soon knows why."""
        if any(cause.priority == Priority.SPARK for cause in self._causes):
            return
        now = time.monotonic()
        self._lost_at = self._lost_at or now
        if (why := self._jobs.starters_failure()) or now - self._lost_at > _EXPLAIN_SECONDS:
            text = f"{_ENDED_WITH_TASK}: {why or f'the process that keeps the ranks of {host} has ended'}"
            self._causes.append(Cause(Priority.SPARK, RunError(text)))

    def _receive(self, peer: Peer, message: Any) -> None:
        """On a thread of the peer. If the terminal is paused, printing waits, then the peer, and at last the rank."""
        if not isinstance(message, Output):
            self._events.put((peer, message))
            return
        try:
            self._bar.print(f"[rank {message.rank}] {message.line}", message.stream)
        except Exception as error:
            self._events.put((None, error))

    def _handle(self, peer: Peer | None, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        if isinstance(message, Progress):
            self._watch.note(message)
            if message.rank == 0:
                self._bar.show(message)
        elif isinstance(message, Imbalance):
            warn(message)
        elif isinstance(message, OrderDependent):
            warn_of_join_keys(message.columns)
        elif isinstance(message, RankReady):
            self._ready.add(message.rank)
        elif isinstance(message, RankStarted) and peer is not None:
            self._started[message.rank] = peer, message
        elif isinstance(message, Result):
            self._results[message.rank] = message
            self._watch.note_return(message.rank)
        elif isinstance(message, Failure):
            self._causes.append(failures.of_rank(message))
        elif isinstance(message, JobEnded) and message.error is not None:
            is_starter = message.name == STARTS_RANKS
            what = _ENDED_WITH_TASK if is_starter and self._started else message.name
            of_job = failures.of_job(self._session, self._files.name, message.part, what, message.error)
            # A retry fails, too, but not with the reason.
            if is_starter and (why := self._jobs.starters_failure()):
                of_job.error.args = (f"{what}: {why}",)
            self._causes.append(of_job)
        cause = self._launcher.handle(peer, message)
        if cause is not None and cause.rank not in self._results:
            self._causes.append(cause)

    def _supply(self, hosts: dict[str, list[int]]) -> None:
        self._supplies = True
        self._hosts = hosts
        for data in self._supplied:
            self._jobs.supply(data, self._file_options(data.kind))

    def _file_options(self, kind: str) -> dict[str, str]:
        mapped_files, named_pipes = self._files.config_texts(kind)
        options = {"mapped-files-text": mapped_files, "named-pipes-text": named_pipes}
        return options if self._is_local else {**options, "hosts-text": self._files.hosts_text(self._hosts)}

    def _stop(self, seconds: float = 0) -> None:
        """Ends ranks and jobs. A rank that hangs prints first where it is. seconds: for jobs to end by themselves."""
        stalled = any(cause.priority in (Priority.PAIR, Priority.ENDED) for cause in self._causes)
        self._launcher.stop(Stop(dump=stalled, keep_results=self._rows is not None))
        self._join_launcher()
        if not (self._jobs.join(seconds) or self._jobs.cancel(_END_SECONDS)):
            _log.warning("Spark's jobs of %s have not ended within %d s", self._files.name, _END_SECONDS)

    def _join_launcher(self) -> bool:
        """Handles the last output of the ranks. False: the launcher is still running after some time."""
        end = time.monotonic() + _END_SECONDS
        while not self._launcher.has_ended and time.monotonic() < end:
            self._handle_event()
            if self._bar.is_blocked:
                end = time.monotonic() + _END_SECONDS
        return self._launcher.has_ended


def _unpickled(result: bytes) -> Any:
    try:
        return pickle.loads(result)
    except Exception as error:
        raise RunError(
            f"all ranks have returned, but the driver cannot unpickle the result of rank 0 ({error}): return what the "
            "driver can have, for example tensors on the CPU"
        ) from error
