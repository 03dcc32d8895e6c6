"""A call whose ranks are started again when they fail, from the newest checkpoint (docs/design/restarts.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_supplier.driver import failures
from spark_supplier.driver.checkpoints import CallCheckpoints, Checkpoint
from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RankError, RunError
from spark_supplier.launch.restarts import wording_of

_log = logging.getLogger("spark_supplier")

# What happens to processes, and not at a place of the program: it may happen there twice.
_OF_PROCESSES = re.compile(r"was killed by SIG(KILL|TERM)|the ranks have ended with Spark's task")


@dataclass
class Restarts:
    """count: how often the ranks of a call have been started again. last_failure: why, at last."""

    count: int = 0
    last_failure: str | None = None


def result_of(
    session: Session, most: int, checkpoints: CallCheckpoints, attempt: Callable[[Checkpoint | None, Restarts], Any]
) -> Any:
    """The result of the first attempt that does not fail, of 1 + most."""
    restarts = Restarts()
    earlier: list[tuple[RunError, int | None]] = []
    checkpoint = checkpoints.newest()
    while True:
        try:
            return attempt(checkpoint, restarts)
        except RunError as error:
            if restarts.count == most or isinstance(error, failures.NotAgain) or failures.is_cancelled(session, error):
                _name_earlier(error, earlier)
                raise
            session.check_running("the session")
            number = None if checkpoint is None else checkpoint.number
            if earlier and earlier[-1][1] == number and _is_same(earlier[-1][0], error):
                _name_earlier(error, earlier, "it has failed so twice from the same place, and is not started again")
                raise
            earlier.append((error, number))
            restarts = Restarts(restarts.count + 1, str(error))
            try:
                checkpoint = checkpoints.newest()
            except RunError as unreadable:
                _name_earlier(unreadable, earlier)
                raise
            _log.warning(
                "%s\nthe ranks are started again (%d of %d), from %s",
                error, restarts.count, most, _named(None if checkpoint is None else checkpoint.number),
            )  # fmt: skip


def _is_same(one: RunError, other: RunError) -> bool:
    """Whether it is the program, or the data, that fails."""
    return _place(one) == _place(other) is not None


def _place(error: RunError) -> tuple[Any, ...] | None:
    """What is equal for two failures at one place. None: a process or a node has gone."""
    said = error.__cause__ if isinstance(error, RankError) and error.__cause__ is not None else error
    wording = None if _OF_PROCESSES.search(str(said)) else wording_of(str(said))
    return None if wording is None else (type(said), wording)


def _name_earlier(error: RunError, earlier: list[tuple[RunError, int | None]], why: str = "") -> None:
    """The text of the error gets those of the attempts before."""
    if not earlier:
        return
    listed = "\n".join(
        f"attempt {index + 1}, from {_named(number)}: {_first_line(before)}"
        for index, (before, number) in enumerate(earlier)
    )
    said = f"\n{why}. Before it failed:" if why else "\nBefore it failed:"
    error.args = (f"{error}{said}\n{listed}", *error.args[1:])


def _named(number: int | None) -> str:
    return "the beginning" if number is None else f"checkpoint {number}"


def _first_line(error: RunError) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    # The exception of a rank comes last, after its traceback.
    return f"{lines[0]} {lines[-1]}" if isinstance(error, RankError) and len(lines) > 1 else lines[0]
