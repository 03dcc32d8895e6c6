"""Runs of one application take turns if Spark's task slots do not suffice for all.

Otherwise each would start its ranks in the slots that feed the ranks of the others, and none could continue. The
driver's JVM decides for all clients (supply/run/Turns.scala). Ranks that wait for a call of their Supplier end if
another run needs their slots, or their GPUs.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from spark_supplier.driver import failures
from spark_supplier.driver.sessions import Session, in_thread
from spark_supplier.errors import RunError

# Ctrl-C and a cancelled session end the wait for a turn.
_TICK_SECONDS = 0.2
# The server shows each call on its page.
_CONNECT_TICK_SECONDS = 1

_WHY = (
    "this run waits: other runs of this session, or of other clients of its server, hold Spark's task slots or GPUs, "
    "which do not suffice for both at once"
)

_log = logging.getLogger("spark_supplier")

# How often the jobs of each application were cancelled by this process.
_cancelled: collections.Counter[str] = collections.Counter()


@dataclass
class Needs:
    """What a run holds, by host.

    slots: for tasks of any kind. device_slots: for those that get GPUs, where a starter may take one without. ranks:
    that get GPUs; less than 0: all GPUs of the host.
    """

    slots: dict[str, int]
    device_slots: dict[str, int]
    ranks: dict[str, int]


class Turn:
    """Of ranks. run: their name at the hub. gpus: CUDA_VISIBLE_DEVICES of each host, while it is their turn."""

    def __init__(self, session: Session, run: str) -> None:
        self._session = session
        self.run = run
        self._is_kept = False
        self.gpus: dict[str, str] = {}

    @contextlib.contextmanager
    def held(self, needs: Needs) -> Iterator[bool]:
        """Waits for the turn, in the order of the calls of all clients, and holds it while the block runs.

        Yields False for ranks that have waited for a call, and must end. Ctrl-C, and whatever cancels the jobs of a run
        of this process (as Ctrl-C does in another thread), end the wait.
        """
        try:
            is_held = self._wait(needs)
            # Until then, ranks that wait for a call keep what they have.
            self._is_kept = False
            yield is_held
        except BaseException as error:
            self.note(error)
            raise
        finally:
            if not self._is_kept:
                self.release()

    def note(self, error: BaseException) -> None:
        """Ends the waits of other runs of this process if a cancellation has ended this one: before its slots are free.

        They are when its ranks have left the hub, too.
        """
        if isinstance(error, KeyboardInterrupt) or failures.is_cancelled(self._session, error):
            _cancelled[self._session.application] += 1

    def keep(self, needs: Needs) -> None:
        """The ranks wait for a call, and any client may have their slots. Call it at the end of a turn."""
        self._ask("turn-idle", needs=asdict(needs))
        self._is_kept = True

    def release(self) -> None:
        """Does nothing if the session has ended: a turn ends with its run at the hub, too."""
        try:
            self._call(lambda: self._session.ask("turn-release", run=self.run))
        except Exception:
            _log.debug("the turn of %s is not released", self.run, exc_info=True)

    def _wait(self, needs: Needs) -> bool:
        is_cancelled = cancellation(self._session)
        has_said = False
        while True:
            answer = self._ask("turn-ask", needs=asdict(needs))
            # Its slots may have come from the run that was cancelled.
            is_cancelled()
            if answer["state"] != "waits":
                break
            if not has_said:
                _log.warning(_WHY)
                has_said = True
            time.sleep(_CONNECT_TICK_SECONDS if self._session.is_connect else _TICK_SECONDS)
        self.gpus = answer["gpus"]
        return bool(answer["state"] == "held")

    def _ask(self, name: str, **words: Any) -> dict[str, Any]:
        try:
            return self._call(lambda: self._session.ask(name, run=self.run, **words))
        except Exception as error:
            raise RunError(f"the session has stopped while this run waited for its turn ({error})") from error

    def _call(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        # Ctrl-C, whose handler calls the JVM, must not find this thread in a call of the JVM.
        answer = in_thread(self._session, "supply: a turn", call)
        try:
            concurrent.futures.wait([answer])
        except BaseException:
            # A later release() must come later.
            concurrent.futures.wait([answer])
            raise
        return answer.result()


def cancellation(session: Session) -> Callable[[], None]:
    """A function that raises NotAgain if a run of this process that had the slots was cancelled since then."""
    before = _cancelled[session.application]

    def check() -> None:
        if _cancelled[session.application] != before:
            raise failures.NotAgain("the run was cancelled, with another run of this session that it waited for")

    return check


@contextlib.contextmanager
def one_at_a_time(lock: threading.Lock, check: Callable[[], None]) -> Iterator[None]:
    """Holds the lock while the block runs. check: raises if the wait must end."""
    while not lock.acquire(timeout=_TICK_SECONDS):
        check()
    try:
        yield
    finally:
        lock.release()
