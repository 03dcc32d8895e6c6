"""One run of Supplier.run, on the driver: starts everything, collects results, and ends everything."""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import time
from collections.abc import Container
from typing import Any

from supply.errors import RunError
from supply.ranks.control import Control, Peer
from supply.ranks.messages import Failure, Output, Progress, RankStarted, Result, Stop, Work
from supply.ranks.run_files import RunFiles
from supply.spark import failures
from supply.spark.cancellable import run_cancellable
from supply.spark.driver_addresses import driver_addresses
from supply.spark.failures import Cause, Priority
from supply.spark.host_file import write_host_file
from supply.spark.launcher import Launcher
from supply.spark.progress import ProgressBar
from supply.spark.run_result import RunResult
from supply.spark.spark_jobs import STARTS_RANKS, JobEnded, SparkJobs, Supplied

# How long other reports may follow a first failure, and a cause its consequences.
_SETTLE_SECONDS = 2
_EXPLAIN_SECONDS = 10
# How long everything may take to end.
_END_SECONDS = 30
# Spark names the pair of a stuck rank, so its own limit passes first.
_STALL_SECONDS = 5
# A wait for longer would delay Ctrl-C.
_TICK_SECONDS = 0.2

_log = logging.getLogger("supply.spark")


class Run:
    """payload: a pickled Job.

    timeout: seconds for ranks to start, and to return after the data. reads_results: whether the ranks write rows.
    """

    def __init__(
        self,
        context: Any,
        launcher: Launcher,
        ranks: int,
        files: RunFiles,
        supplied: list[Supplied],
        payload: bytes,
        timeout: float,
        environment: dict[str, str],
        reads_results: bool,
    ) -> None:
        self._context = context
        self._launcher = launcher
        self._ranks = ranks
        self._files = files
        self._supplied = supplied
        self._payload = payload
        self._timeout = timeout
        self._environment = environment
        self._reads_results = reads_results
        self._rows: Any = None
        self._events: queue.SimpleQueue[tuple[Peer | None, Any]] = queue.SimpleQueue()
        self._jobs = SparkJobs(context, files.name, lambda ended: self._events.put((None, ended)))
        self._supplies = False
        self._started: dict[int, tuple[Peer, RankStarted]] = {}
        self._results: dict[int, Result] = {}
        self._causes: list[Cause] = []
        # When a rank received elements or a result came.
        self._advanced_at = 0.0
        self._is_local = context._jsc.sc().isLocal()
        self._bar = ProgressBar(int(supplied[0].options["epochs"]))

    def result(self) -> Any:
        """Runs everything. Returns rank 0's result, or a RunResult if the ranks write rows.

        When it returns or raises, nothing is left but those rows.
        """
        with contextlib.ExitStack() as ends:
            ends.callback(self._bar.close)
            ends.callback(lambda: self._files.remove(keep_results=self._rows is not None))
            self._files.write_config(of_driver=True)
            address, host = driver_addresses(self._context)
            control = ends.enter_context(
                contextlib.closing(Control(address, lambda peer, message: self._events.put((peer, message))))
            )
            environment = {**self._environment, **control.environment(host)}
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
        begin = time.monotonic()
        while len(self._started) < self._ranks:
            self._handle_next()
            if time.monotonic() - begin > self._timeout:
                driver = driver_addresses(self._context)[1]
                raise RunError(
                    f"{self._missing(self._started)} not started within {self._timeout:g} s: if nodes are slow, set "
                    f"timeout larger. If they cannot connect to the driver at {driver}, which the executors' logs say, "
                    "set spark.driver.host"
                )
        first = self._started[0][1]
        # The machine may have lost the address by which Spark knows it.
        address = "127.0.0.1" if self._is_local else first.host
        for peer, _ in self._started.values():
            peer.send(Work(self._payload, (address, first.port)))
        self._advanced_at = time.monotonic()
        while len(self._results) < self._ranks:
            self._handle_next()
            if time.monotonic() - self._advanced_at > self._timeout + _STALL_SECONDS:
                text = (
                    f"{self._missing(self._results)} not returned, and no rank has received a block for "
                    f"{self._timeout:g} s: if they are slow and not stuck, set timeout larger"
                )
                self._causes.append(Cause(Priority.PAIR, RunError(text)))
        if self._reads_results:
            self._rows = self._load_results()
            # The ranks have waited for this.
            self._stop()
            return
        at_end = all(result.at_end for result in self._results.values())
        if not (at_end and self._jobs.join(_END_SECONDS) and self._join_launcher()):
            self._stop()

    def _load_results(self) -> Any:
        """The DataFrame of the rows that the ranks have written. It reads them where they are."""
        while not self._jobs.have_supplied():
            self._handle_next()
        options = {
            **self._file_options("train"), "ranks": self._ranks, "timeout": self._timeout,
            "results": "results", "results-folder": self._files.results_folder,
        }  # fmt: skip
        reader = self._supplied[0].df.sparkSession.read.format("supply").options(**options)
        return run_cancellable(self._context, reader.load)

    def _missing(self, present: Container[int]) -> str:
        missing = [str(rank) for rank in range(self._ranks) if rank not in present]
        return f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(missing)} have"

    def _handle_next(self) -> None:
        """As _handle_event(). Raises the cause if the run has failed, and supplies when the ranks are ready."""
        self._handle_event()
        if self._causes:
            self._settle()
            cause = failures.first(self._causes)
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
        return self._launcher.is_explaining or failures.first(self._causes).priority == Priority.CONSEQUENCE

    def _handle_event(self) -> None:
        """Handles the next event, if one comes soon."""
        with contextlib.suppress(queue.Empty):
            self._handle(*self._events.get(timeout=_TICK_SECONDS))

    def _handle(self, peer: Peer | None, message: Any) -> None:
        if isinstance(message, Output):
            self._bar.print(f"[rank {message.rank}] {message.line}", message.stream)
        elif isinstance(message, Progress):
            self._advanced_at = time.monotonic()
            if message.rank == 0:
                self._bar.show(message)
        elif isinstance(message, RankStarted) and peer is not None:
            self._started[message.rank] = peer, message
        elif isinstance(message, Result):
            self._advanced_at = time.monotonic()
            self._results[message.rank] = message
        elif isinstance(message, Failure):
            self._causes.append(failures.of_rank(message))
        elif isinstance(message, JobEnded) and message.error is not None:
            lost = message.name == STARTS_RANKS and self._started
            what = "the ranks have ended with Spark's task that keeps them" if lost else message.name
            self._causes.append(failures.of_job(self._context, what, message.error))
        cause = self._launcher.handle(peer, message)
        if cause is not None and cause.rank not in self._results:
            self._causes.append(cause)

    def _supply(self, hosts: dict[str, list[int]]) -> None:
        self._supplies = True
        write_host_file(self._files.host_file, hosts)
        for data in self._supplied:
            self._jobs.supply(data, self._file_options(data.kind))

    def _file_options(self, kind: str) -> dict[str, str]:
        mapped_files, named_pipes = self._files.config(kind)
        options = {"mapped-files": mapped_files, "named-pipes": named_pipes}
        return options if self._is_local else {**options, "hosts": str(self._files.host_file)}

    def _stop(self) -> None:
        """Ends ranks and jobs. A rank that hangs prints first where it is."""
        stalled = any(cause.priority == Priority.PAIR for cause in self._causes)
        self._launcher.stop(Stop(dump=stalled, keep_results=self._rows is not None))
        self._join_launcher()
        if not self._jobs.cancel(_END_SECONDS):
            _log.warning("Spark's jobs of %s have not ended within %d s", self._files.name, _END_SECONDS)

    def _join_launcher(self) -> bool:
        """Handles the last output of the ranks. False: the launcher is still running after some time."""
        end = time.monotonic() + _END_SECONDS
        while not self._launcher.has_ended and time.monotonic() < end:
            self._handle_event()
        return self._launcher.has_ended


def _unpickled(result: bytes) -> Any:
    try:
        return pickle.loads(result)
    except Exception as error:
        raise RunError(
            f"all ranks have returned, but the driver cannot unpickle the result of rank 0 ({error}): return what the "
            "driver can have, for example tensors on the CPU"
        ) from error
