"""One call of Supplier.run, on the driver: supplies ranks, collects their results, and ends them if it fails."""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from spark_supplier.driver import failures
from spark_supplier.driver.attempts import CallCheckpoints
from spark_supplier.driver.failures import Cause, NotAgain, Priority
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.placement import what_holds_slots
from spark_supplier.driver.progress import ProgressBar
from spark_supplier.driver.rank_pool import END_SECONDS, RankPool
from spark_supplier.driver.rank_watch import RankWatch, explain_uneven, named
from spark_supplier.driver.results import RunResult
from spark_supplier.driver.sessions import Session, run_cancellable
from spark_supplier.driver.spark_jobs import STARTS_RANKS, JobEnded, SparkJobs, Supplied, warn
from spark_supplier.driver.statistics import Measurements, RunStatistics
from spark_supplier.errors import RunConfigError, RunError, RunTimeoutError
from spark_supplier.node.environment import path_entries, plain_host
from spark_supplier.node.job import RESULTS
from spark_supplier.node.messages import (
    Attempt,
    Begin,
    Failure,
    Imbalance,
    Leave,
    Measured,
    Progress,
    RankReady,
    Result,
    Saved,
    Stop,
    Work,
)
from spark_supplier.node.run_files import RunFiles

# How long other reports may follow a first failure, and a cause its consequences.
_SETTLE_SECONDS = 2
_EXPLAIN_SECONDS = 10
# How long tasks may take to end by themselves when their ranks have left.
_OWN_END_SECONDS = 5

# A wait for rows that is worth a word.
_LONG_SECONDS = 10

_ENDED_WITH_TASK = "the ranks have ended with Spark's task that keeps them"

_log = logging.getLogger("spark_supplier")


@dataclass
class Limits:
    """In seconds, as of Supplier.run."""

    start_timeout: float
    stall_timeout: float | None


class Run:
    """pool: ranks that wait for a call, or have just been started. payload: a pickled Job.

    reads_results: whether the ranks write rows. functions: how many the call has. statistics: when result() has
    returned or raised.
    """

    def __init__(
        self,
        session: Session,
        pool: RankPool,
        files: RunFiles,
        supplied: list[Supplied],
        payload: bytes,
        backend: str | None,
        limits: Limits,
        reads_results: bool,
        attempt: Attempt,
        checkpoints: CallCheckpoints,
        on_report: Callable[[dict[str, Any]], object] | None,
        functions: int,
    ) -> None:
        self._functions = functions
        self._pool = pool
        self._session = session
        self._launcher = pool.launcher
        self._ranks = pool.ranks
        self._files = files
        self._supplied = supplied
        self._payload = payload
        self._backend = backend
        self._limits = limits
        self._reads_results = reads_results
        self._attempt = attempt
        self._checkpoints = checkpoints
        self._on_report = on_report
        # Of each function.
        self._rows: list[Any] = []
        self._jobs = SparkJobs(session, files.name, pool.post, run=pool.files.name)
        # Keepers that have been asked to begin.
        self._begun: set[Peer] = set()
        self._supplies = False
        self._hosts: dict[str, list[int]] = {}
        self._ready: set[int] = set()
        options = supplied[0].options
        self._watch = RankWatch(self._ranks, int(options["epochs"]), options["shuffle"] == "all")
        self._watch.functions = functions
        self._results: dict[int, Result] = {}
        self._causes: list[Cause] = []
        self._lost_at: float | None = None
        # Whether a rank may have got the function.
        self._has_work = False
        self._is_local = session.is_local
        self._bar = ProgressBar(int(supplied[0].options["epochs"]), pool.launcher.prints_itself)
        self._measurements = Measurements()
        self._bar.numbers = self._measurements.newest
        self.statistics = RunStatistics()

    def _advise(self) -> None:
        later = [row for row in self.statistics.ranks if row["epoch"] > 0]
        seconds, own = (sum(row[kind] for row in later) / self._ranks for kind in ("waiting_for_spark", "program"))
        options = self._supplied[0].options
        if seconds > max(_LONG_SECONDS, own) and not (options["resident"] or options["resident-folder"]):
            why = "Spark computes df again in each, unless you persist df or set cache='memory'"
            _log.warning("ranks waited %.0f s for rows in later epochs: %s", seconds, why)

    def result(self) -> list[Any]:
        """Runs everything. Returns the result of the first rank of each function, or its RunResult if ranks write rows.

        When it returns, the ranks wait for another call, unless the pool has failed, and nothing is left of this one
        but those rows. If it raises, the ranks have ended.
        """
        with contextlib.ExitStack() as ends:
            ends.callback(self._advise)
            ends.callback(self._say_where_time_went)
            ends.callback(self._bar.close)
            ends.callback(self._jobs.forget)
            ends.callback(self._measure)
            ends.callback(lambda: self._files.remove(keep_results=bool(self._rows)))
            try:
                self._wait()
            except BaseException:
                self._stop()
                raise
        self._say_what_equal_steps_took()
        values = [_unpickled(self._results[number].payload) for number in range(self._functions)]
        if self._reads_results:
            return [RunResult(value, rows, self.statistics) for value, rows in zip(values, self._rows)]
        return values

    def _measure(self) -> None:
        self.statistics = self._measurements.statistics(self._jobs.times())

    def _say_where_time_went(self) -> None:
        if self.statistics.sentence is not None:
            _log.info("%s", self.statistics.sentence)

    def _say_what_equal_steps_took(self) -> None:
        # All ranks of a group have repeated the same rows.
        results = [self._results[group[0]] for group in self._groups()]
        repeated, left_out = (sum(rows) for rows in zip(*((each.repeated, each.left_out) for each in results)))
        if repeated or left_out:
            did = f"repeated {repeated} rows" if repeated else f"left out {left_out} rows"
            _log.warning("to make equal steps, the ranks have %s (uneven; 'keep' gives each row once)", did)

    def _groups(self) -> list[list[int]]:
        """The ranks that get the same rows."""
        share = self._supplied[0].options["share"] or 1
        if share == "node":
            return list((self._launcher.hosts or {}).values())
        return [list(range(first, first + share)) for first in range(0, self._ranks, share)]

    def _check_groups(self) -> None:
        """Raises RunConfigError if the ranks of a group are on several nodes, or have none to exchange rows with."""
        groups, hosts = self._groups(), self._launcher.hosts or {}
        for group in groups:
            if len(group) > 1 and not any(set(group) <= set(ranks) for ranks in hosts.values()):
                raise RunConfigError(
                    f"share is {len(group)}, and ranks {group[0]} to {group[-1]} are not all on one node: give each "
                    "node a multiple of share"
                )
        if self._supplied[0].options["shuffle"] == "all" and len({len(group) for group in groups}) > 1:
            raise RunConfigError(
                "with shuffle='all' and share='node' each node needs as many ranks as the others, and "
                + ", ".join(f"{host} has {len(ranks)}" for host, ranks in hosts.items())
            )

    def _wait(self) -> None:
        """Until every rank has returned a result, and nothing of the call is left."""
        self._start_ranks()
        self._bar.waits = self._watch.waits
        limit = self._limits.stall_timeout
        while len(self._results) < self._ranks:
            self._handle_next()
            if self._pool.printer.is_blocked:
                self._watch.restart()
            if limit is not None and (stalled := self._watch.stalled(limit)):
                text = (
                    f"{named(stalled)} took no rows and did not return for {limit:g} s (stall_timeout): their output "
                    "says where they were. If they were slow and not stuck, set stall_timeout larger"
                )
                self._causes.append(Cause(Priority.PAIR, RunTimeoutError(text)))
        if self._reads_results:
            self._rows = [self._load_results(number) for number in range(self._functions)]
        seconds: float = END_SECONDS
        if not all(result.at_end for result in self._results.values()):
            seconds = _OWN_END_SECONDS
            self._jobs.end_with_ranks()
            for peer, _ in self._pool.started.values():
                peer.send(Leave())
        has_ended = self._jobs.join(seconds) or self._jobs.cancel(END_SECONDS)
        if not (self._pool.end_call(self._begun, bool(self._rows)) and has_ended):
            # All ranks have returned, so the call has not failed.
            self._stop()

    def _start_ranks(self) -> None:
        """Until all ranks have started, and have met."""
        limit = self._limits.start_timeout
        end = time.monotonic() + limit
        started = self._pool.started
        while len(started) < self._ranks or self._pool.keepers_ready < self._launcher.keepers_in_all:
            self._handle_next()
            if time.monotonic() > end:
                missing = f"{self._missing(started)} not started within {limit:g} s (start_timeout)"
                if not started and (jobs := what_holds_slots(self._session, 1)):
                    raise RunTimeoutError(
                        f"{missing}: tasks of other jobs hold Spark's slots: {jobs}. Wait for their end, or give Spark "
                        "more cores"
                    )
                raise RunTimeoutError(
                    f"{missing}: if nodes are slow, set start_timeout larger. If they cannot connect to the driver at "
                    f"{self._pool.hub.host}, which the executors' logs say, set spark.driver.host"
                )
        self._check_groups()
        firsts = [started[rank][1] for rank in range(self._functions)]
        # The machine may have lost the address by which Spark knows it.
        masters = [("127.0.0.1" if self._is_local else plain_host(first.host), first.port) for first in firsts]
        work = Work(self._payload, self._files, path_entries(), masters, self._backend, self._attempt)
        self._has_work = True
        for peer, _ in started.values():
            peer.send(work)
        while len(self._ready) < self._ranks:
            self._handle_next()
            if time.monotonic() > end:
                raise RunTimeoutError(
                    f"{self._missing(self._ready)} not met the others within {limit:g} s (start_timeout): if nodes are "
                    "slow, set start_timeout larger. If torch.distributed cannot connect from node to node, set "
                    "GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME in environment= of the Supplier"
                )
        self._watch.restart()

    def _load_results(self, function: int) -> Any:
        """The DataFrame of the rows that the ranks of a function have written. It reads them where they are."""
        # What ends a job is an event, too.
        while not self._jobs.have_supplied() or self._pool.has_events:
            self._handle_next()
        options = {
            **self._file_options("train"), "timeout": self._limits.start_timeout,
            **self._launcher.result_options(self._files, self._supplied[0].options["share"], function),
            "results": RESULTS, "hub-run": self._pool.files.name,
            # A server of Spark Connect refers to a DataFrame only while it computes it.
            "release-unreferenced": not self._session.is_connect,
        }  # fmt: skip
        reader = self._session.spark.read.format("supply").options(**options)

        def load() -> Any:
            loaded = reader.load()
            # Spark Connect asks the ranks only now.
            _ = loaded.schema
            return loaded

        return run_cancellable(self._session, load, run=self._pool.files.name, part=RESULTS)

    def _missing(self, present: Container[int]) -> str:
        missing = [str(rank) for rank in range(self._ranks) if rank not in present]
        if not missing:
            return "a node of the ranks has"
        return f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(missing)} have"

    def _handle_next(self) -> None:
        """As _handle_event(). Raises the cause if the run has failed, and supplies when the files are there."""
        for keeper in self._launcher.keepers:
            if keeper not in self._begun:
                self._begun.add(keeper)
                keeper.send(Begin(self._files))
        self._handle_event()
        if self._causes:
            self._settle()
            cause = failures.first(self._causes)
            explain_uneven(cause, self._watch.uneven())
            raise cause.error from cause.original
        if self._supplies or self._pool.keepers_ready < self._launcher.keepers_in_all:
            return
        if hosts := self._launcher.hosts:
            self._supply(hosts)

    def _settle(self) -> None:
        """Handles what follows a first failure."""
        begin = time.monotonic()
        while time.monotonic() - begin < (_EXPLAIN_SECONDS if self._is_unexplained() else _SETTLE_SECONDS):
            self._handle_event()
        if self._launcher.lost_host is not None and not failures.first(self._causes).is_explained:
            # Its ranks have said first that they were stopped.
            self._explain_loss(self._launcher.lost_host, 0)

    def _is_unexplained(self) -> bool:
        """Whether the first cause is still to come."""
        if self._launcher.is_explaining or failures.first(self._causes).is_explained:
            return self._launcher.is_explaining
        if self._watch.uneven() is not None:
            return False
        in_collectives = {cause.rank for cause in self._causes if cause.priority == Priority.COLLECTIVE}
        reported = self._results.keys() | {cause.rank for cause in self._causes} - {None}
        # If Spark had failed, a rank would have been told.
        has_all = len(in_collectives) == self._ranks or (
            len(reported) == self._ranks and self._jobs.have_supplied() and not self._pool.has_events
        )
        return not has_all

    def _handle_event(self) -> None:
        """Handles the next event, if one comes soon."""
        if event := self._pool.next_event():
            self._handle(*event)
        if self._launcher.lost_host is not None:
            self._explain_loss(self._launcher.lost_host, _EXPLAIN_SECONDS)

    def _explain_loss(self, host: str, seconds: float) -> None:
        """Spark retries the task that kept the ranks of that host, so its job has not ended. It soon knows why."""
        if any(cause.priority == Priority.SPARK for cause in self._causes):
            return
        now = time.monotonic()
        self._lost_at = self._lost_at or now
        if (why := self._pool.jobs.starters_failure()[0]) or now - self._lost_at >= seconds:
            text = f"{_ENDED_WITH_TASK}: {why or f'the process that keeps the ranks of {host} has ended'}"
            self._causes.append(Cause(Priority.SPARK, RunError(text)))

    def _take(self, measured: Measured) -> None:
        for report in self._measurements.take(measured):
            if self._on_report is not None:
                self._on_report(dict(report))

    def _handle(self, peer: Peer | None, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        if isinstance(message, Progress):
            self._watch.note(message)
            if message.rank == 0:
                self._bar.show(message)
        elif isinstance(message, Measured):
            self._take(message)
        elif isinstance(message, Imbalance):
            warn(message)
            if message.name == "df":
                self._checkpoints.partitions = message.partitions
        elif isinstance(message, Saved):
            self._checkpoints.take(message)
        elif isinstance(message, RankReady):
            self._ready.add(message.rank)
        elif isinstance(message, Result):
            self._results[message.rank] = message
            self._watch.note_return(message.rank)
        elif isinstance(message, Failure):
            self._causes.append(failures.of_rank(message))
        elif isinstance(message, JobEnded) and message.error is not None:
            is_starter = message.name == STARTS_RANKS
            what = _ENDED_WITH_TASK if is_starter and self._pool.started else message.name
            of_job = failures.of_job(self._session, self._pool.files.name, message.part, what, message.error)
            # A retry fails, too, but not with the reason.
            why, is_misplaced = self._pool.jobs.starters_failure() if is_starter else (None, False)
            if why:
                of_job.error.args = (f"{what}: {why}",)
                self._pool.are_misplaced = is_misplaced and not self._has_work
            self._causes.append(of_job)
        cause = self._pool.handle(peer, message)
        if cause is not None and cause.rank not in self._results:
            self._causes.append(cause)

    def _supply(self, hosts: dict[str, list[int]]) -> None:
        self._supplies = True
        self._hosts = hosts
        rings = hosts.values() if self._supplied[0].options["global-batch"] else self._groups()
        self._watch.groups = {rank: number for number, group in enumerate(rings) for rank in group}
        for data in self._supplied:
            self._jobs.supply(data, self._file_options(data.kind))

    def _file_options(self, kind: str) -> dict[str, str]:
        return self._launcher.file_options(self._files, kind, None if self._is_local else self._hosts)

    def _stop(self) -> None:
        """Ends ranks and jobs. A rank that hangs prints first where it is."""
        hangs = self._causes and failures.first(self._causes).priority in (Priority.PAIR, Priority.ENDED)
        self._pool.stop(Stop(dump=bool(hangs)))
        if not self._jobs.cancel(END_SECONDS):
            _log.warning("Spark's jobs of %s have not ended within %d s", self._files.name, END_SECONDS)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _storage if name == "_load_from_bytes" else super().find_class(module, name)


def _storage(content: bytes) -> Any:
    """Of a tensor: on the CPU if the driver does not have its device."""
    import torch

    here = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    place: Any = lambda storage, device: None if device in here else storage  # noqa: E731
    return torch.load(io.BytesIO(content), map_location=place, weights_only=False)


def _unpickled(result: bytes) -> Any:
    try:
        return _Unpickler(io.BytesIO(result)).load()
    except Exception as error:
        raise NotAgain(
            f"all ranks have returned, but the driver cannot unpickle the result of rank 0 ({error}): return what the "
            "driver can have, for example tensors on the CPU"
        ) from error
