"""Which of several failures of a run is the cause."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import IntEnum

from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RankError, RunError, RunTimeoutError
from spark_supplier.launch import signals
from spark_supplier.limits import FOLDER
from spark_supplier.node import exceptions
from spark_supplier.node.exceptions import in_words_of_run
from spark_supplier.node.messages import Failure, RankEnded


class Priority(IntEnum):
    """The smallest is the cause; of two equal ones the first."""

    CUT = 0  # a program cut the file of a pair: its rank gets SIGBUS
    PROCESS = 1  # a process ended, and nobody had asked it to: other ranks then fail in their collectives
    SPARK = 2  # Spark or the source failed
    RANK = 3  # a rank's function raised
    FILES = 4  # Spark could not use the files of the pairs
    PAIR = 5  # Spark noticed that a rank had stalled
    COLLECTIVE = 6  # a rank's collective failed: it does when another rank goes, for whichever reason
    ENDED = 7  # Spark noticed that a rank, or the files of its pair, had gone
    CONSEQUENCE = 8


_OF_JOB = {
    "CutFileException": Priority.CUT,
    "ConfigException": Priority.FILES,
    "ContractException": Priority.FILES,
    "MappingException": Priority.FILES,
    "PairException": Priority.FILES,
    "RankException": Priority.PAIR,
    "RankEndedException": Priority.ENDED,
}


@dataclass
class Cause:
    """error: what Supplier.run raises. original: the exception that it reports, if there is one."""

    priority: Priority
    error: RunError
    original: BaseException | None = None

    @property
    def is_explained(self) -> bool:
        """Whether this is what failed first. Otherwise there is a cause of it, which may be reported later."""
        return self.priority < Priority.COLLECTIVE

    @property
    def rank(self) -> int | None:
        return self.error.rank if isinstance(self.error, RankError) else None


def first(causes: list[Cause]) -> Cause:
    """The cause of a failed run."""
    # The process of a rank that has reported its exception ends, too, and that report may come first.
    raised = {cause.rank for cause in causes if cause.priority != Priority.PROCESS} - {None}
    candidates = [cause for cause in causes if cause.priority != Priority.PROCESS or cause.rank not in raised]
    return min(candidates, key=lambda cause: cause.priority)


def of_rank(failure: Failure) -> Cause:
    text = f"rank {failure.rank} on {failure.host} failed:\n{failure.traceback}"
    priority = Priority.COLLECTIVE if failure.of_collective else Priority.RANK
    if failure.of_spark:
        priority = Priority.CONSEQUENCE
    return Cause(priority, RankError(text, failure.rank, failure.host), exceptions.loaded(failure.raised))


def of_process(ended: RankEnded) -> Cause:
    if ended.status < 0:
        how = f"was killed by {signals.name(-ended.status)}"
        if ended.status == -signal.SIGKILL:
            how += " (perhaps because the node or its container ran out of memory)"
        if ended.status == -signal.SIGBUS:
            how += (
                f" (perhaps because {FOLDER} is full: make it larger, by docker run --shm-size=..., or on Kubernetes "
                "by an emptyDir of medium Memory)"
            )
    else:
        how = f"exited with status {ended.status} before it returned a result"
    priority = Priority.CONSEQUENCE if ended.stopped else Priority.PROCESS
    return Cause(priority, RankError(f"rank {ended.rank} on {ended.host} {how}", ended.rank, ended.host))


def of_job(session: Session, run: str, part: str, what: str, error: BaseException) -> Cause:
    """part: of the run at the hub. what: the job, for the text."""
    failure = session.failure(error, run, part)
    text = failure.text if failure.name is None else in_words_of_run(failure.text)
    known = RunTimeoutError if failure.has_passed else RunError
    priority = _OF_JOB.get(failure.name or "", Priority.SPARK)
    if priority < Priority.PAIR:
        text = f"{what}: {text}"
    if priority == Priority.FILES and failure.is_of_missing_file:
        # A rank's files go with it.
        priority = Priority.ENDED
    return Cause(priority, known(text), error)


class NotAgain(RunError):
    """After it, the ranks are not started again: the run was cancelled with another one, or all ranks have returned."""


def is_cancelled(session: Session, error: BaseException) -> bool:
    """Whether the run's job was cancelled: by Ctrl-C, Spark's UI, cancelAllJobs() or interruptAll()."""
    cause = error.__cause__
    return cause is not None and (
        session.failure(cause).name == "SupplierEndedException"
        or re.search(r"Job \d+ cancelled (?!because SparkContext)|OPERATION_CANCELED", str(error)) is not None
    )
