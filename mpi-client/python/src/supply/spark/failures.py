"""Which of several failures of a run is the cause."""

from __future__ import annotations

import pickle
import re
import signal
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from supply.errors import RankError, RunError
from supply.ranks.messages import Failure, RankEnded


class Priority(IntEnum):
    """The smallest is the cause; of two equal ones the first."""

    PROCESS = 0  # a process ended, and nobody had asked it to: other ranks then fail in their collectives
    SPARK = 1  # Spark or the source failed
    RANK = 2  # a rank's function raised
    PAIR = 3  # Spark noticed that a rank had ended or stalled
    CONSEQUENCE = 4


@dataclass
class Cause:
    """error: what Supplier.run raises. original: the exception that it reports, if there is one."""

    priority: Priority
    error: RunError
    original: BaseException | None = None

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
    try:
        raised = None if failure.payload is None else pickle.loads(failure.payload)
    except Exception:
        raised = None
    text = f"rank {failure.rank} on {failure.host} failed:\n{failure.traceback}"
    priority = Priority.CONSEQUENCE if failure.of_spark else Priority.RANK
    return Cause(priority, RankError(text, failure.rank, failure.host), raised)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # Most real-time signals have no name.
        return f"signal {number}"


def of_process(ended: RankEnded) -> Cause:
    if ended.status < 0:
        how = f"was killed by {signal_name(-ended.status)}"
        if ended.status == -signal.SIGKILL:
            how += " (perhaps because the node or its container ran out of memory)"
    else:
        how = f"exited with status {ended.status} before it returned a result"
    priority = Priority.CONSEQUENCE if ended.stopped else Priority.PROCESS
    return Cause(priority, RankError(f"rank {ended.rank} on {ended.host} {how}", ended.rank, ended.host))


def of_job(what: str, error: BaseException) -> Cause:
    """what: the job, for the text."""
    name, text = _java_cause(error)
    if name.startswith("supply.core.Rank"):
        return Cause(Priority.PAIR, RunError(text), error)
    return Cause(Priority.SPARK, RunError(f"{what}: {text}"), error)


def _java_cause(error: BaseException) -> tuple[str, str]:
    """Class and text of the Java exception that PySpark has wrapped."""
    java: Any = getattr(error, "java_exception", None)
    while java is not None:
        name = java.getClass().getName()
        if name.startswith("supply.") or java.getCause() is None:
            return name, _first_lines(str(java.getMessage()))
        java = java.getCause()
    return type(error).__name__, _first_lines(str(error))


def _first_lines(text: str) -> str:
    """Without the stack traces of Spark's tasks; of a Python task the exception itself."""
    python = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", text, re.MULTILINE)
    return python[-1] if "Traceback" in text and python else text.split("\n", 1)[0]
