"""Runs of one session take turns, if Spark's task slots do not suffice for all of them at once.

Otherwise each would start its ranks in the slots that feed the ranks of the others, and none could continue.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from supply.errors import RunError
from supply.spark import failures
from supply.spark.threads import in_thread

# Ctrl-C and a cancelled session end the wait.
_TICK_SECONDS = 0.2

_log = logging.getLogger("supply.spark")


class _Turns:
    """Of one session."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: collections.deque[object] = collections.deque()
        # The slots that each run holds, by host.
        self.held: list[Mapping[str, int]] = []
        # How often the jobs of the session were cancelled.
        self.cancelled = 0

    def fits(self, needed: Mapping[str, int], slots: Callable[[], Mapping[str, int]]) -> bool:
        """Whether nobody else holds the slots. A run alone always fits: its placement has been checked."""
        if not self.held:
            return True
        # Ctrl-C, whose handler calls the JVM, must not find this thread in a call of the JVM.
        answer = in_thread("supply: task slots", slots)
        concurrent.futures.wait([answer])
        try:
            offered = answer.result()
        except Exception as error:
            raise RunError(f"the session has stopped while this run waited for its turn ({error})") from error
        return all(
            count + sum(held.get(host, 0) for held in self.held) <= offered.get(host, 0)
            for host, count in needed.items()
        )


_of_contexts: weakref.WeakKeyDictionary[Any, _Turns] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


@contextlib.contextmanager
def turn(context: Any, needed: Mapping[str, int], slots: Callable[[], Mapping[str, int]]) -> Iterator[None]:
    """Holds the task slots while the block runs, and waits for them first, in the order of the calls.

    needed: slots by host. slots: returns those that Spark has. Ctrl-C, and whatever cancels the jobs of the run that
    has the slots (as Ctrl-C does in another thread), end the wait.
    """
    with _lock:
        turns = _of_contexts.setdefault(context, _Turns())
    _wait(turns, needed, slots)
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or failures.is_cancelled(error):
            with turns.changed:
                turns.cancelled += 1
        raise
    finally:
        with turns.changed:
            turns.held.remove(needed)
            turns.changed.notify_all()


def _wait(turns: _Turns, needed: Mapping[str, int], slots: Callable[[], Mapping[str, int]]) -> None:
    ticket = object()
    with turns.changed:
        turns.waiting.append(ticket)
        cancelled, has_said = turns.cancelled, False
        try:
            while turns.waiting[0] is not ticket or not turns.fits(needed, slots):
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
