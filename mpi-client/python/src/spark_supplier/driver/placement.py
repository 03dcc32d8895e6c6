"""Which node gets which ranks."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from spark_supplier.driver.hub import Hub, Peer
from spark_supplier.driver.sessions import Session, Slots
from spark_supplier.errors import RunError, RunTimeoutError

_POLL_SECONDS = 0.1
# The server shows each call on its page.
_CONNECT_POLL_SECONDS = 1

_log = logging.getLogger("spark_supplier")

# The task slots of each host.
_Slots = dict[str, int]
_Found = TypeVar("_Found")


def place(
    slots: _Slots, starter_slots: _Slots, ranks: int, tasks_per_rank: int, share: int = 1
) -> dict[str, list[int]]:
    """The ranks of each host: consecutive numbers, as evenly as the slots allow. {}: there are too few slots.

    slots: task slots of each host. tasks_per_rank: pinned tasks that feed a rank. share: how many neighbouring ranks
    are on one host, and have these tasks together. Each host with ranks needs one slot for its starter, which may also
    be one without a GPU (starter_slots).
    """
    capacity = {
        host: min(count, starter_slots.get(host, count) - 1) // tasks_per_rank for host, count in sorted(slots.items())
    }
    counts = dict.fromkeys(capacity, 0)
    for _ in range(ranks // share):
        free = [host for host in counts if counts[host] < capacity[host]]
        if not free:
            return {}
        counts[min(free, key=lambda host: counts[host])] += 1
    placed, first = {}, 0
    for host, count in counts.items():
        if count:
            placed[host] = list(range(first, first + count * share))
        first += count * share
    return placed


def wait_for_placement(
    session: Session, ranks: int, tasks_per_rank: int, timeout: float, option: str, share: int = 1
) -> dict[str, list[int]]:
    """As place(), for the registered executors of a session. Waits for executors that are still coming.

    option: that sets the timeout, for the text. Raises RunError if the slots do not suffice.
    """
    return _wait_until_enough(
        session,
        (tasks_per_rank + 1) * ranks // share,
        timeout,
        option,
        lambda found: place(found.slots, found.starter_slots, ranks, tasks_per_rank, share),
        partial(_too_few, session, ranks, tasks_per_rank, share, 1),
    )


def wait_for_slots(
    session: Session, ranks: int, tasks_per_rank: int, timeout: float, option: str, share: int = 1
) -> list[str]:
    """The hosts of the executors. As wait_for_placement(), for ranks that mpirun starts and places."""

    def hosts(found: Slots) -> list[str]:
        return sorted(found.slots) if sum(found.slots.values()) >= ranks // share * tasks_per_rank else []

    too_few = partial(_too_few, session, ranks, tasks_per_rank, share, 0)
    return _wait_until_enough(session, tasks_per_rank * ranks // share, timeout, option, hosts, too_few)


def wait_for_ranks(
    session: Session, least: int, most: int, tasks_per_rank: int, starters: int, timeout: float, share: int = 1
) -> int:
    """How many ranks the registered executors can have, at least and at most as many as these.

    Waits for the executors of the most. starters: 1 if each node with ranks needs a slot for a starter, else 0. If not
    even the least fit, it returns the most, whose placement says what is missing.
    """
    if least == most:
        return most

    fitting: int | None = None

    def fit(found: Slots, ranks: int) -> bool:
        if starters:
            return bool(place(found.slots, found.starter_slots, ranks, tasks_per_rank, share))
        return sum(found.slots.values()) >= ranks // share * tasks_per_rank

    def find(found: Slots) -> int | None:
        nonlocal fitting
        fitting = next((ranks for ranks in range(most, least - 1, -share) if fit(found, ranks)), None)
        return fitting if fitting == most else None

    with contextlib.suppress(RunError):
        _wait_until_enough(session, (tasks_per_rank + starters) * most // share, timeout, "", find, lambda found: "")
    return fitting or most


def _wait_until_enough(
    session: Session,
    tasks: int,
    timeout: float,
    option: str,
    find: Callable[[Slots], _Found],
    too_few: Callable[[Slots], str],
) -> _Found:
    """tasks: for as many, Spark gets executors. find: returns an empty value if the slots do not suffice.

    too_few: returns the text of the error.
    """
    end = time.monotonic() + timeout
    name = f"supply-{uuid.uuid4().hex[:12]}"
    # Spark may start executors only for tasks that wait, which a run at the hub has.
    with contextlib.closing(Hub(session, name, _ignore)) if session.is_dynamic else contextlib.nullcontext():
        while True:
            is_late = time.monotonic() > end
            slots = session.slots(name, tasks)
            if slots.impossible:
                raise RunError(slots.impossible)
            if found := find(slots):
                return found
            if slots.is_complete:
                raise RunError(too_few(slots))
            if is_late:
                raise RunTimeoutError(f"{too_few(slots)} (waited {timeout:g} s for more executors; {option})")
            time.sleep(_CONNECT_POLL_SECONDS if session.is_connect else _POLL_SECONDS)


def _ignore(peer: Peer, message: Any) -> None:
    """Of a run without peers."""


def keep_slots(session: Session, run: str, tasks: int, slots: dict[str, int]) -> None:
    """Spark keeps its executors for the run, which is open at the hub, until the first of its jobs begins.

    Otherwise it would end those that have no task before the run has one. slots: of each host; none: any host.
    """
    if session.is_dynamic and tasks:
        session.slots(run, tasks, [host for host, count in slots.items() for _ in range(count)])


def what_holds_slots(session: Session, needed: int) -> str:
    """The jobs that have tasks now, if fewer slots than needed are free. Without those that keep ranks."""
    # What failed first is said elsewhere.
    with contextlib.suppress(RunError):
        found = session.slots()
        return session.holders() if sum(found.slots.values()) - found.busy < needed else ""
    return ""


def warn_of_busy_slots(session: Session, needed: int) -> None:
    """Says at once what the ranks wait for, if other jobs of the session hold the slots."""
    if jobs := what_holds_slots(session, needed):
        _log.warning("this run needs %d free task slots, and waits for jobs that hold Spark's: %s", needed, jobs)


def _too_few(session: Session, ranks: int, tasks_per_rank: int, share: int, starters: int, found: Slots) -> str:
    """starters: one on each node, or 0."""
    master = session.master
    executors = "spark.dynamicAllocation.maxExecutors" if session.is_dynamic else "spark.executor.instances"
    needed = ranks // share * tasks_per_rank
    each = f" ({tasks_per_rank} for each {share})" if share > 1 else " (two each, with validation)"
    what = f"{ranks} ranks need {needed} task slots{each if share > 1 or tasks_per_rank > 1 else ''}"
    have = ", ".join(f"{host} has {count}" for host, count in sorted(found.slots.items())) or "there is no executor"
    fix = (
        f"use master local[{needed + starters}]" if master.startswith("local") and "cluster" not in master
        else f"raise {executors} or spark.executor.cores, or lower spark.task.cpus (with GPUs, raise "
        "spark.executor.resource.gpu.amount, or lower spark.task.resource.gpu.amount)"
    )  # fmt: skip
    start = ", and one on each node to start its ranks" if starters else ""
    return f"{what}{start}, but Spark ({master}) has too few: {have}: {fix}"
