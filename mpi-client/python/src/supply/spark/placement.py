"""Which node gets which ranks, and when: runs of one session take turns if Spark's task slots do not suffice for all.

Otherwise each would start its ranks in the slots that feed the ranks of the others, and none could continue."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from supply.errors import RunError, RunTimeoutError
from supply.spark import failures
from supply.spark.cancellable import in_thread
from supply.spark.sessions import Session, Slots

_POLL_SECONDS = 0.1
# Ctrl-C and a cancelled session end the wait for a turn.
_TICK_SECONDS = 0.2

_log = logging.getLogger("supply.spark")

# The task slots of each host.
_Slots = dict[str, int]
_Found = TypeVar("_Found")


def place(slots: _Slots, starter_slots: _Slots, ranks: int, tasks_per_rank: int) -> dict[str, list[int]]:
    """The ranks of each host: consecutive numbers, as evenly as the slots allow. {}: there are too few slots.

    slots: task slots of each host. tasks_per_rank: pinned tasks that feed a rank. Each host with ranks needs one slot
    for its starter, which may also be one without a GPU (starter_slots).
    """
    capacity = {
        host: min(count, starter_slots.get(host, count) - 1) // tasks_per_rank for host, count in sorted(slots.items())
    }
    counts = dict.fromkeys(capacity, 0)
    for _ in range(ranks):
        free = [host for host in counts if counts[host] < capacity[host]]
        if not free:
            return {}
        counts[min(free, key=lambda host: counts[host])] += 1
    placed, first = {}, 0
    for host, count in counts.items():
        if count:
            placed[host] = list(range(first, first + count))
        first += count
    return placed


def wait_for_placement(
    session: Session, ranks: int, tasks_per_rank: int, timeout: float, option: str
) -> dict[str, list[int]]:
    """As place(), for the registered executors of a session. Waits for executors that are still coming.

    option: that sets the timeout, for the text. Raises RunError if the slots do not suffice.
    """
    return _wait_until_enough(
        session,
        (tasks_per_rank + 1) * ranks,
        timeout,
        option,
        lambda found: place(found.slots, found.starter_slots, ranks, tasks_per_rank),
        partial(_too_few, session, ranks, tasks_per_rank, 1),
    )


def wait_for_slots(session: Session, ranks: int, tasks_per_rank: int, timeout: float, option: str) -> list[str]:
    """The hosts of the executors. As wait_for_placement(), for ranks that mpirun starts and places."""

    def hosts(found: Slots) -> list[str]:
        return sorted(found.slots) if sum(found.slots.values()) >= ranks * tasks_per_rank else []

    return _wait_until_enough(
        session, tasks_per_rank * ranks, timeout, option, hosts, partial(_too_few, session, ranks, tasks_per_rank, 0)
    )


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
    try:
        while True:
            is_late = time.monotonic() > end
            # Spark starts executors for tasks that wait.
            slots = session.slots(name, tasks)
            if slots.impossible:
                raise RunError(slots.impossible)
            found = find(slots)
            if found:
                return found
            if slots.is_complete:
                raise RunError(too_few(slots))
            if is_late:
                raise RunTimeoutError(f"{too_few(slots)} (waited {timeout:g} s for more executors; {option})")
            time.sleep(_POLL_SECONDS)
    finally:
        session.ask_if_there("slots", run=name)


def task_slots(session: Session) -> dict[str, int]:
    """The task slots of each host, busy or free, and those for tasks with_devices()."""
    found = session.slots()
    return {**found.starter_slots, **{with_devices(host): count for host, count in found.slots.items()}}


def with_devices(host: str) -> str:
    """Names the slots of a host for tasks that get GPUs: a starter may take one without."""
    return f"{host} (tasks with devices)"


def what_holds_slots(session: Session, needed: int) -> str:
    """The jobs that have tasks now, if fewer slots than needed are free. Without those that keep ranks."""
    found = session.slots()
    return found.holders if sum(found.slots.values()) - found.busy < needed else ""


def warn_of_busy_slots(session: Session, needed: int) -> None:
    """Says at once what the ranks wait for, if other jobs of the session hold the slots."""
    if jobs := what_holds_slots(session, needed):
        _log.warning("this run needs %d free task slots, and waits for jobs that hold Spark's: %s", needed, jobs)


def gpus_of_hosts(session: Session) -> dict[str, str]:
    """CUDA_VISIBLE_DEVICES of each host whose executors have got GPUs from Spark (spark.executor.resource.gpu.*)."""
    return {host: ",".join(addresses) for host, addresses in session.slots().gpus.items()}


@contextlib.contextmanager
def gpus_for_ranks(session: Session, ranks: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """CUDA_VISIBLE_DEVICES for this number of ranks of each host, while the block runs, within a turn().

    Runs at the same time get other GPUs, unless tasks share them.
    """
    amount = float(session.setting("spark.task.resource.gpu.amount") or 0)
    turns = _turns_of(session)
    of_hosts = session.slots().gpus
    with turns.changed:
        held = collections.Counter(gpu for gpus in turns.gpus for gpu in gpus)
        own = {}
        for host, addresses in of_hosts.items():
            found = [(host, address) for address in addresses]
            needed = ranks.get(host, 0) * max(1, int(amount)) if amount > 0 else len(found)
            # In Spark's order, which every rank of the host sees.
            own[host] = sorted(sorted(found, key=held.__getitem__)[:needed], key=found.index)
        taken = [gpu for gpus in own.values() for gpu in gpus]
        turns.gpus.append(taken)
    try:
        yield {host: ",".join(address for _, address in gpus) for host, gpus in own.items()}
    finally:
        with turns.changed:
            turns.gpus.remove(taken)


def addresses_of_hosts(session: Session, hosts: list[str]) -> dict[str, list[str]]:
    """The addresses by which each node can tell whether it is one of the hosts. Names are looked up here only."""
    return session.ask("addresses", hosts=",".join(hosts))


def _too_few(session: Session, ranks: int, tasks_per_rank: int, starters: int, found: Slots) -> str:
    """starters: one on each node, or 0."""
    master = session.master
    executors = "spark.dynamicAllocation.maxExecutors" if found.is_dynamic else "spark.executor.instances"
    needed = ranks * tasks_per_rank
    what = f"{ranks} ranks need {needed} task slots{' (two each, with validation)' if tasks_per_rank > 1 else ''}"
    have = ", ".join(f"{host} has {count}" for host, count in sorted(found.slots.items())) or "there is no executor"
    fix = (
        f"use master local[{needed + starters}]" if master.startswith("local") and "cluster" not in master
        else f"raise {executors} or spark.executor.cores, or lower spark.task.cpus (with GPUs, raise "
        "spark.executor.resource.gpu.amount, or lower spark.task.resource.gpu.amount)"
    )  # fmt: skip
    start = ", and one on each node to start its ranks" if starters else ""
    return f"{what}{start}, but Spark ({master}) has too few: {have}: {fix}"


class _Turns:
    """Of one session."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: collections.deque[object] = collections.deque()
        # The slots that each run holds, by host.
        self.held: list[Mapping[str, int]] = []
        # The GPUs of each run: host and address.
        self.gpus: list[list[tuple[str, str]]] = []
        # How often the jobs of the session were cancelled.
        self.cancelled = 0

    def fits(self, session: Session, needed: Mapping[str, int]) -> bool:
        """Whether nobody else holds the slots. A run alone always fits: its placement has been checked."""
        if not self.held:
            return True
        # Ctrl-C, whose handler calls the JVM, must not find this thread in a call of the JVM.
        answer = in_thread(session, "supply: task slots", lambda: task_slots(session))
        concurrent.futures.wait([answer])
        try:
            offered = answer.result()
        except Exception as error:
            raise RunError(f"the session has stopped while this run waited for its turn ({error})") from error
        return all(
            count + sum(held.get(host, 0) for held in self.held) <= offered.get(host, 0)
            for host, count in needed.items()
        )


# By the application's id.
_of_applications: dict[str, _Turns] = {}


def _turns_of(session: Session) -> _Turns:
    return _of_applications.setdefault(session.application, _Turns())


@contextlib.contextmanager
def turn(session: Session, needed: Mapping[str, int]) -> Iterator[None]:
    """Holds the task slots while the block runs, and waits for them first, in the order of the calls.

    needed: slots by host. Ctrl-C, and whatever cancels the jobs of the run that
    has the slots (as Ctrl-C does in another thread), end the wait.
    """
    turns = _turns_of(session)
    _wait_for_turn(turns, session, needed)
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or failures.is_cancelled(session, error):
            with turns.changed:
                turns.cancelled += 1
        raise
    finally:
        with turns.changed:
            turns.held.remove(needed)
            turns.changed.notify_all()


def _wait_for_turn(turns: _Turns, session: Session, needed: Mapping[str, int]) -> None:
    ticket = object()
    with turns.changed:
        turns.waiting.append(ticket)
        cancelled, has_said = turns.cancelled, False
        try:
            while turns.waiting[0] is not ticket or not turns.fits(session, needed):
                if not has_said:
                    _log.warning(
                        "this run waits: other runs of this session hold Spark's task slots, which do not suffice for "
                        "both at once"
                    )
                    has_said = True
                turns.changed.wait(_TICK_SECONDS)
                if turns.cancelled != cancelled:
                    raise RunError("the run was cancelled, with another run of this session that it waited for")
            turns.held.append(needed)
        finally:
            turns.waiting.remove(ticket)
            turns.changed.notify_all()
