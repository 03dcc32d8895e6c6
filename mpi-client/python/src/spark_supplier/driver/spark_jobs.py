"""The Spark jobs of one run, each on its own thread, with the Python that its workers run in local mode."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from pyspark import RDD
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests
from pyspark.serializers import NoOpSerializer

from spark_supplier.driver.sessions import ClassicSession, Session, cancel_jobs, in_thread
from spark_supplier.node.messages import Imbalance
from spark_supplier.node.node_process import arrow_starter_task, starter_task

_log = logging.getLogger("spark_supplier")

# Two threads may fit at once, as in a CrossValidator.
_changing = threading.Lock()


def use_python_of_driver(session: ClassicSession) -> None:
    """In local mode, the workers run the driver's Python unless another one is configured, and not `python3`."""
    is_configured = "PYSPARK_PYTHON" in os.environ or session.setting("spark.pyspark.python") is not None
    if session.is_local and not is_configured:
        session.context.pythonExec = sys.executable


@contextlib.contextmanager
def python_of_driver(session: Session) -> Iterator[None]:
    """As use_python_of_driver(), for what is made here. Over Spark Connect, the server's settings name the Python."""
    if not isinstance(session, ClassicSession):
        yield
        return
    context = session.context
    with _changing:
        before = context.pythonExec
        use_python_of_driver(session)
        try:
            yield
        finally:
            context.pythonExec = before


# The job of start_nodes(), as JobEnded names it.
STARTS_RANKS = "the ranks could not start"


@dataclass
class Supplied:
    """A DataFrame to supply.

    kind: "train" or "validation". options: of df.write.format("supply"); None: not set. repartition: as of
    Supplier.run.
    """

    df: Any
    kind: str
    options: dict[str, Any]
    repartition: str | int

    @property
    def name(self) -> str:
        """The argument of Supplier.run."""
        return "df" if self.kind == "train" else self.kind


@dataclass
class JobEnded:
    """part: of the run at the hub. error: None if the job succeeded."""

    name: str
    part: str
    error: BaseException | None


class SparkJobs:
    """tag: names the jobs. ended: gets a JobEnded for each job, on the job's thread. run: their run at the hub."""

    def __init__(self, session: Session, tag: str, ended: Callable[[JobEnded], None], run: str | None = None) -> None:
        self._session = session
        self._tag = tag
        self._run = run or tag
        self._ended = ended
        self._jobs: list[Future[None]] = []
        self._supplying: list[Future[None]] = []

    def start_nodes(self, specs: dict[str, bytes]) -> None:
        """Starts a node process on each host. specs: a pickled NodeSpec for each host."""
        idle = self._session.idle_seconds
        starter = starter_task(specs, idle / 4 if idle else None)
        self._start(
            STARTS_RANKS,
            self._over_connect(specs, starter) if self._session.is_connect else self._of_classic(specs, starter),
        )

    def _of_classic(
        self, hosts: Iterable[str], starter: Callable[[int, Iterable[bytes]], Iterator[bytes]]
    ) -> Callable[[], Any]:
        assert isinstance(self._session, ClassicSession)
        context, jvm = self._session.context, self._session.jvm
        names = jvm.java.util.ArrayList()
        for host in hosts:
            names.add(host)
        nodes = RDD(jvm.supply.api.Starters.of(context._jsc.sc(), self._tag, names), context, NoOpSerializer())
        start = nodes.mapPartitionsWithIndex(starter)
        with python_of_driver(self._session):
            # Spark makes the task's command, with its Python, here.
            _ = start._jrdd

        def count() -> None:
            # In Spark's UI.
            context.setJobDescription(jvm.supply.api.Starters.name())
            # In the JVM, which drops the beats.
            start._jrdd.count()

        return count

    def _over_connect(
        self, hosts: Iterable[str], starter: Callable[[int, Iterable[bytes]], Iterator[bytes]]
    ) -> Callable[[], Any]:
        options = self._session.options("starters", {"run": self._tag, "hosts": list(hosts)})
        nodes = self._session.spark.read.format("supply").options(**options).load()
        profile = None
        if (cores := self._session.cores_of_starter) is not None:
            profile = _of_cores(self._session.spark, cores)
        beats = nodes.mapInArrow(arrow_starter_task(starter), "beat binary", profile=profile)
        return beats.write.format("noop").mode("append").save  # type: ignore[no-any-return]

    def starters_failure(self) -> tuple[str | None, bool]:
        """Why a starter has failed, and whether Spark ran it on another host than its own: it has started nothing then.

        None: none has, or Spark does not know it yet.
        """
        answer = self._session.ask_if_there("starters-failure", run=self._tag)
        return answer.get("text"), bool(answer.get("misplaced", False))

    def supply(self, data: Supplied, files: dict[str, str]) -> None:
        """Supplies a DataFrame to all ranks. files: the options that name files."""

        def supply() -> None:
            given = {name: value for name, value in data.options.items() if value is not None}
            own = {"frame-name": data.name, "repartition": data.repartition, "hub-run": self._run}
            data.df.write.format("supply").mode("append").options(**given, **files, **own).save()

        self._supplying.append(self._start(f"Spark could not supply the {data.kind} data", supply, data.name))

    def end_with_ranks(self) -> None:
        """All ranks have returned: a task ends without a failure when its rank leaves."""
        self._session.ask_if_there("end-with-ranks", run=self._run)

    def times(self) -> list[dict[str, Any]]:
        """Of the tasks that have supplied data, until forget(): as RunStatistics has them."""
        return list(self._session.ask_if_there("times", run=self._run).get("tasks", []))

    def forget(self) -> None:
        """No job is left that supplies data."""
        self._session.ask_if_there("forget", run=self._run)

    def have_supplied(self) -> bool:
        """Whether the jobs of supply() have ended."""
        return all(job.done() for job in self._supplying)

    def cancel(self, seconds: float) -> bool:
        """Cancels all jobs. False: one is still running after that time."""
        return cancel_jobs(self._session, self._tag, self._jobs, seconds)

    def join(self, seconds: float) -> bool:
        """False: a job is still running after that time."""
        return not concurrent.futures.wait(self._jobs, seconds).not_done

    def _start(self, name: str, action: Callable[[], Any], part: str = "") -> Future[None]:
        def job() -> None:
            try:
                self._session.tag(self._tag)
                if name == STARTS_RANKS:
                    # By which the JVM knows the job.
                    self._session.tag(f"{self._tag}-starters")
                action()
            except BaseException as error:
                self._ended(JobEnded(name, part, error))
            else:
                self._ended(JobEnded(name, part, None))

        self._jobs.append(in_thread(self._session, f"supply: {name}", job))
        return self._jobs[-1]


def _of_cores(spark: Any, cores: float) -> ResourceProfile:
    """Of a session of Spark Connect. PySpark asks the active session of the thread for the profile's id, and keeps it.

    The threads of jobs have no active session, nor may the caller's.
    """
    from pyspark.sql.connect.session import SparkSession

    active: Any = SparkSession._active_session
    before = getattr(active, "session", None)
    active.session = spark
    try:
        profile = ResourceProfileBuilder().require(TaskResourceRequests().resource("cpus", cores)).build
        _ = profile.id
    finally:
        active.session = before
    return profile


def warn(imbalance: Imbalance) -> None:
    """Says what is wrong with the ranks' shares of a DataFrame, and what is done about it."""
    if imbalance.partitions:
        remedy = (
            f"So Spark repartitions its rows over {imbalance.partitions} partitions, in a shuffle. To avoid that, give "
            f"{imbalance.name} more partitions of about equal size, or set repartition=False"
        )
    else:
        remedy = "Set repartition='auto' (of an LMDB that is read in place, its reader's option partitions)"
    _log.warning(f"{imbalance.warning}. {remedy}")
