"""The Spark jobs of one run, each on its own thread, with the Python that its workers run in local mode."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD
from pyspark.serializers import NoOpSerializer

from supply.ranks.messages import Imbalance
from supply.ranks.node_process import starter_task
from supply.spark.cancellable import cancel_jobs, in_thread

_log = logging.getLogger("supply.spark")

# Two threads may fit at once, as in a CrossValidator.
_changing = threading.Lock()


def use_python_of_driver(context: Any) -> None:
    """In local mode, the workers run the driver's Python unless another one is configured, and not `python3`."""
    is_configured = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if context._jsc.sc().isLocal() and not is_configured:
        context.pythonExec = sys.executable


@contextlib.contextmanager
def python_of_driver(context: Any) -> Iterator[None]:
    """As use_python_of_driver(), for what is made here."""
    with _changing:
        before = context.pythonExec
        use_python_of_driver(context)
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
    """error: None if the job succeeded."""

    name: str
    error: BaseException | None


class SparkJobs:
    """tag: the name of the run. ended: gets a JobEnded for each job, on the job's thread."""

    def __init__(self, context: Any, tag: str, ended: Callable[[JobEnded], None]) -> None:
        self._context = context
        self._tag = tag
        self._ended = ended
        self._jobs: list[Future[None]] = []
        self._supplying: list[Future[None]] = []

    def start_nodes(self, specs: dict[str, bytes]) -> None:
        """Starts a node process on each host. specs: a pickled NodeSpec for each host."""
        jvm = self._context._jvm
        hosts = jvm.java.util.ArrayList()
        for host in specs:
            hosts.add(host)
        nodes = RDD(jvm.supply.api.Nodes.starters(self._context._jsc.sc(), hosts), self._context, NoOpSerializer())
        start = nodes.mapPartitionsWithIndex(starter_task(specs, self._beat()))
        with python_of_driver(self._context):
            # Spark makes the task's command, with its Python, here.
            _ = start._jrdd
        # In the JVM, which drops the beats.
        self._start(STARTS_RANKS, start._jrdd.count)

    def _beat(self) -> float | None:
        """How often a starter must say something, if Spark ends workers that say nothing."""
        conf = self._context._jsc.sc().conf()
        idle = float(conf.getTimeAsSeconds("spark.python.worker.idleTimeoutSeconds", "0"))
        ends = idle > 0 and conf.getBoolean("spark.python.worker.killOnIdleTimeout", False)
        return idle / 4 if ends else None

    def starters_failure(self) -> str | None:
        """Why a starter has failed. None: none has, or Spark does not know it yet."""
        # The JVM may be gone.
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            text: str | None = self._context._jvm.supply.api.Nodes.startersFailure(self._context._jsc.sc(), self._tag)
            return text
        return None

    def supply(self, data: Supplied, files: dict[str, str]) -> None:
        """Supplies a DataFrame to all ranks. files: the options that name files."""

        def supply() -> None:
            given = {name: value for name, value in data.options.items() if value is not None}
            own = {"frame-name": data.name, "repartition": data.repartition, "hub-run": self._tag}
            data.df.write.format("supply").mode("append").options(**given, **files, **own).save()

        self._supplying.append(self._start(f"Spark could not supply the {data.kind} data", supply))

    def end_with_ranks(self) -> None:
        """All ranks have returned: a task ends without a failure when its rank leaves."""
        self._context._jvm.supply.run.UnwantedRuns.add(self._tag)

    def forget(self) -> None:
        """No job is left."""
        # The JVM may be gone.
        with contextlib.suppress(Py4JError, OSError):
            self._context._jvm.supply.run.UnwantedRuns.remove(self._tag)

    def have_supplied(self) -> bool:
        """Whether the jobs of supply() have ended."""
        return all(job.done() for job in self._supplying)

    def cancel(self, seconds: float) -> bool:
        """Cancels all jobs. False: one is still running after that time."""
        return cancel_jobs(self._context, self._tag, self._jobs, seconds)

    def join(self, seconds: float) -> bool:
        """False: a job is still running after that time."""
        return not concurrent.futures.wait(self._jobs, seconds).not_done

    def _start(self, name: str, action: Callable[[], Any]) -> Future[None]:
        def job() -> None:
            try:
                self._context.addJobTag(self._tag)
                if name == STARTS_RANKS:
                    # In Spark's UI, and where the tasks that hold cores are named.
                    self._context.setJobDescription(self._context._jvm.supply.api.Nodes.startersName())
                action()
            except BaseException as error:
                self._ended(JobEnded(name, error))
            else:
                self._ended(JobEnded(name, None))

        self._jobs.append(in_thread(f"supply: {name}", job))
        return self._jobs[-1]


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
