"""A call whose ranks are started again when they fail, from the newest checkpoint (docs/design/restarts.md)."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_supplier.driver import failures
from spark_supplier.driver.sessions import Session, run_cancellable
from spark_supplier.errors import RankError, RunConfigError, RunError
from spark_supplier.launch.restarts import wording_of
from spark_supplier.node.messages import Attempt, Saved
from spark_supplier.settings import Checkpoints

_VERSION = 1

_log = logging.getLogger("spark_supplier")


@dataclass
class Checkpoint:
    """folder, number: where it is. holders: the ranks that have saved a state.

    begins: the resume_positions of the ranks that saved it. positions: of each of them, after that. partitions: over
    how many the rows of df were dealt for them; 0: they were not. call: of which call. share: as of Rows.
    """

    folder: str
    number: int
    call: str
    holders: list[int]
    begins: str | None
    positions: list[str | None]
    partitions: int
    share: int | str | None

    def beginning(self, ranks: int, is_global: bool) -> Attempt:
        """Where that number of ranks begins. As many as before continue each its own data, in its order.

        is_global: they have one order, and ranks that stopped in one batch of it may be at different rows.
        """
        if ranks == len(self.positions) and not is_global:
            return Attempt(self.begins, self.positions, self.number, self.holders)
        positions = ",".join(position or "no-position" for position in self.positions)
        return Attempt("/".join(filter(None, [self.begins, positions])), None, self.number, self.holders)


def _epochs(positions: Iterable[str | None]) -> set[int]:
    """The epochs in which ranks are. At the end of one, or in front of the next, is the same."""
    known = [position.split(":") for position in positions if position is not None]
    inside = {int(epoch) for _, epoch, is_inside, *_ in known if is_inside == "1"}
    between = {int(epoch) for _, epoch, is_inside, *_ in known if is_inside == "0"}
    return inside | {epoch for epoch in between if epoch - 1 not in inside}


def partitions_of(checkpoint: Checkpoint, repartition: str | int) -> str | int:
    """The option repartition with which df has the partitions of that run."""
    return repartition if repartition != "auto" else checkpoint.partitions or "false"


class CallCheckpoints:
    """saves: where ranks save; None: nowhere. resumes_from: the folder whose newest checkpoint is the beginning."""

    def __init__(
        self, session: Session, saves: Checkpoints | None, resumes_from: str | None, share: int | str | None
    ) -> None:
        self._session = session
        self._share = share
        self._folder = None if saves is None else str(saves.folder)
        self._every = None if saves is None else saves.seconds
        self._keep = 0 if saves is None else saves.keep
        self._call = uuid.uuid4().hex
        # Those before it are of other calls.
        self._first: int | None = None
        # Of the numbers that are taken.
        self._highest = 0
        # Of this attempt.
        self.partitions = 0
        self._run = ""
        self._ranks = 0
        self._begins: str | None = None
        self._saved: dict[int, dict[int, Saved]] = {}
        self._resumed = None if resumes_from is None else self._latest(resumes_from, 0)
        if self._resumed is not None and self._resumed.share != share:
            raise RunConfigError(
                f"checkpoint {self._resumed.number} in {resumes_from} is of a call with share={self._resumed.share!r}, "
                f"and this one has share={share!r}: resume with the same"
            )
        if resumes_from is not None and self._resumed is None:
            _log.warning("no complete checkpoint is in %s yet: ranks start at the beginning", resumes_from)

    def newest(self) -> Checkpoint | None:
        """From which ranks that start now begin; None: from the beginning."""
        found = None
        if self._folder is not None and self._first is not None:
            found = self._latest(self._folder, self._first - 1)
            if found is not None and found.call != self._call:
                raise RunError(
                    f"another call writes checkpoints into {self._folder}: give each call a folder of its own"
                )
        return found or self._resumed

    def begin(self, run: str, attempt: Attempt, ranks: int, checkpoint: Checkpoint | None) -> None:
        """That run at the hub begins from a checkpoint, and may save others. Its ranks learn that by the attempt."""
        self._run, self._ranks = run, ranks
        self._begins = attempt.resume_positions
        self.partitions = 0 if checkpoint is None else checkpoint.partitions
        self._saved.clear()
        if self._folder is None and checkpoint is None:
            return
        folders: dict[str, Any] = {"to": self._folder, "from": None if checkpoint is None else checkpoint.folder}
        number, attempt.every = self._ask("begin", run=run, **folders).get("next"), self._every
        if number is not None:
            if self._first is not None:
                # The hub may still make the file of a rank that was killed, of the one after those that are known.
                number = max(number, self._highest + 1) + 1
            self._first, self._highest = self._first or number, number - 1
        attempt.next = number

    def take(self, saved: Saved) -> None:
        """A rank has saved its part. If it is the last one, the checkpoint counts from now on."""
        self._highest = max(self._highest, saved.number)
        parts = self._saved.setdefault(saved.number, {})
        parts[saved.rank] = saved
        if len(parts) < self._ranks:
            return
        del self._saved[saved.number]
        positions = [parts[rank].position for rank in range(self._ranks)]
        if len(_epochs(positions)) > 1:
            _log.warning(
                "checkpoint %d is not used: its ranks are in different epochs. Ranks that make different numbers of "
                "steps must call data.save(state) at the end of an epoch, or with uneven='pad' or 'drop'",
                saved.number,
            )
            return
        text = {
            "version": _VERSION, "call": self._call, "begins": self._begins, "positions": positions,
            "partitions": self.partitions, "share": self._share,
        }  # fmt: skip
        holders = sorted(rank for rank, part in parts.items() if part.has_state)
        try:
            self._ask(
                "complete", run=self._run, number=saved.number, holders=holders, text=json.dumps(text), keep=self._keep
            )
        except RunError as error:
            # As a rank says it of its part.
            raise RunError(f"the driver cannot save the checkpoint: {error}") from error.__cause__
        _log.info("checkpoint %d is complete", saved.number)

    def _latest(self, folder: str, after: int) -> Checkpoint | None:
        found = self._ask("latest", folder=folder, after=after)
        if found["torn"]:
            _log.warning("not complete, so they are skipped as checkpoints: %s", "; ".join(found["torn"]))
        if "number" not in found:
            return None
        text = json.loads(found["text"])
        if text["version"] != _VERSION:
            raise RunError(
                f"checkpoint {found['number']} in {folder} is of version {text['version']}, and this package knows "
                f"{_VERSION}: use the package that wrote it"
            )
        begins, positions, partitions = text["begins"], text["positions"], text["partitions"]
        share = text.get("share")
        return Checkpoint(folder, found["number"], text["call"], found["ranks"], begins, positions, partitions, share)

    def _ask(self, verb: str, **words: Any) -> dict[str, Any]:
        try:
            # A file system may take its time, and Ctrl-C comes meanwhile.
            return run_cancellable(self._session, lambda: self._session.ask(f"checkpoints-{verb}", **words))
        except (Py4JError, PySparkException) as error:
            raise RunError(self._session.failure(error).text) from error


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
