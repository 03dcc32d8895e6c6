"""Runs of one session take turns if Spark's task slots do not suffice for all.

Otherwise each would start its ranks in the slots that feed the ranks of the others, and none could continue. Ranks that
wait for a call of their Supplier end if another run needs their slots.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from supply.errors import RunError
from supply.spark import failures
from supply.spark.placement import task_slots
from supply.spark.sessions import Session, in_thread

# Ctrl-C and a cancelled session end the wait for a turn.
_TICK_SECONDS = 0.2

_WHY_OF_SLOTS = (
    "this run waits: other runs of this session hold Spark's task slots, which do not suffice for both at once"
)

_log = logging.getLogger("supply.spark")


@dataclass(eq=False)
class Idle:
    """Ranks that wait for a call. Who claims them uses them, or ends them.

    slots: that they hold, by host. end: ends them. ended: whether that has been done.
    """

    slots: Mapping[str, int]
    end: Callable[[], None]
    ended: threading.Event = field(default_factory=threading.Event)


class Turns:
    """Of what shares some slots, such as the runs of one session."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._waiting: collections.deque[object] = collections.deque()
        # The slots that each run holds, by host.
        self._held: list[Mapping[str, int]] = []
        self._idle: list[Idle] = []
        # The GPUs of each run: host and address.
        self.gpus: list[list[tuple[str, str]]] = []
        # How often the jobs of the session were cancelled.
        self._cancelled = 0

    @contextlib.contextmanager
    def turn(
        self,
        needed: Mapping[str, int],
        slots: Callable[[], Mapping[str, int]],
        own: Idle | None = None,
        why: str | None = None,
        is_cancelled: Callable[[BaseException], bool] = lambda _: False,
    ) -> Iterator[bool]:
        """Holds the slots while the block runs, and waits for them first, in the order of the calls.

        needed: slots by host. slots: returns those that there are. own: ranks for this run, whose slots do not count.
        The turn claims them, and yields False if another run has done so during the wait. why: is logged if it waits.
        Ctrl-C, and whatever cancels the jobs of the run that has the slots (as Ctrl-C does in another thread), end the
        wait. is_cancelled: whether an exception of the block says that.
        """
        has_own = self._wait(needed, slots, own, why)
        try:
            yield has_own
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or is_cancelled(error):
                with self.changed:
                    self._cancelled += 1
            raise
        finally:
            self._release(needed)

    def wait_for_call(self, idle: Idle) -> None:
        """From now on anybody may claim them. Call it at the end of a turn that has their slots."""
        with self.changed:
            self._idle.append(idle)

    def end(self, idle: Idle) -> None:
        """Ends them, unless they are claimed already."""
        with self.changed:
            if not self._claim(idle):
                return
            self._held.append(idle.slots)
        try:
            idle.end()
        finally:
            idle.ended.set()
            self._release(idle.slots)

    def _claim(self, idle: Idle) -> bool:
        """False: they are claimed already."""
        if idle not in self._idle:
            return False
        self._idle.remove(idle)
        return True

    def _release(self, slots: Mapping[str, int]) -> None:
        with self.changed:
            self._held.remove(slots)
            self.changed.notify_all()

    def _wait(
        self, needed: Mapping[str, int], slots: Callable[[], Mapping[str, int]], own: Idle | None, why: str | None
    ) -> bool:
        ticket = object()
        with self.changed:
            self._waiting.append(ticket)
            cancelled, has_said = self._cancelled, False
            try:
                while self._waiting[0] is not ticket or not self._fits(needed, slots, own):
                    if not has_said and why is not None:
                        _log.warning(why)
                        has_said = True
                    self.changed.wait(_TICK_SECONDS)
                    if self._cancelled != cancelled:
                        raise RunError("the run was cancelled, with another run of this session that it waited for")
                self._held.append(needed)
                return own is not None and self._claim(own)
            finally:
                self._waiting.remove(ticket)
                self.changed.notify_all()

    def _fits(self, needed: Mapping[str, int], slots: Callable[[], Mapping[str, int]], own: Idle | None) -> bool:
        """Whether nobody else holds the slots. A run alone always fits: its placement has been checked.

        Ends idle ranks that hold them.
        """
        others = [idle for idle in self._idle if idle is not own and idle.slots]
        if not self._held and not others:
            return True
        offered = slots()

        def suffice(taken: list[Mapping[str, int]]) -> bool:
            return not taken or all(
                count + sum(each.get(host, 0) for each in taken) <= offered.get(host, 0)
                for host, count in needed.items()
            )

        if suffice([*self._held, *(idle.slots for idle in others)]):
            return True
        if suffice(self._held):
            for idle in others:
                threading.Thread(target=self.end, args=(idle,), name="supply: end idle ranks", daemon=True).start()
        return False


# By the application's id.
_of_applications: dict[str, Turns] = {}


def turns_of(session: Session) -> Turns:
    """Of the runs of one application."""
    return _of_applications.setdefault(session.application, Turns())


def slots_for_run(
    session: Session, needed: Mapping[str, int], own: Idle | None = None
) -> contextlib.AbstractContextManager[bool]:
    """Turns.turn() with Spark's task slots."""

    def slots() -> Mapping[str, int]:
        # Ctrl-C, whose handler calls the JVM, must not find this thread in a call of the JVM.
        answer = in_thread(session, "supply: task slots", lambda: task_slots(session))
        concurrent.futures.wait([answer])
        try:
            return answer.result()
        except Exception as error:
            raise RunError(f"the session has stopped while this run waited for its turn ({error})") from error

    is_cancelled = partial(failures.is_cancelled, session)
    return turns_of(session).turn(needed, slots, own, _WHY_OF_SLOTS, is_cancelled)


@contextlib.contextmanager
def gpus_for_ranks(session: Session, ranks: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """CUDA_VISIBLE_DEVICES for this number of ranks of each host, while the block runs, within a turn().

    Runs at the same time get other GPUs, unless tasks share them.
    """
    amount = float(session.setting("spark.task.resource.gpu.amount") or 0)
    turns = turns_of(session)
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
