"""Calls into the JVM on threads of their own, that Ctrl-C ends, and whose errors are RunErrors."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import InheritableThread

from supply.errors import RunError, RunTimeoutError

# When jobs are cancelled again.
_AGAIN_SECONDS = 0.5

_Returned = TypeVar("_Returned")


def in_thread(name: str, call: Callable[[], _Returned]) -> Future[_Returned]:
    """Runs the call on a thread that has Spark's properties of this one. The process does not wait for it to exit.

    A future and no join(): before Python 3.13, a thread seems to have ended when Ctrl-C has interrupted its join().
    """
    future: Future[_Returned] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    InheritableThread(target=run, name=name, daemon=True).start()
    return future


def cancel_jobs(
    context: Any, tag: str, calls: Sequence[Future[Any]], seconds: float, also: Callable[[], None] = lambda: None
) -> bool:
    """Cancels the Spark jobs with this tag until these calls have ended. False: one has not after that time.

    also: ends what else the calls do.
    """
    end = time.monotonic() + seconds
    while (running := concurrent.futures.wait(calls, 0).not_done) and time.monotonic() < end:
        # Not once: what it ends may not have begun yet. If the JVM is gone or Spark has stopped (None), its jobs are
        # gone, too.
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            also()
            context.cancelJobsWithTag(tag)
        concurrent.futures.wait(running, _AGAIN_SECONDS)
    return not concurrent.futures.wait(calls, 0).not_done


# How long a cancelled call may take to end.
_CANCEL_SECONDS = 10


def run_cancellable(
    context: Any, call: Callable[[], _Returned], cancel: Callable[[], None] = lambda: None
) -> _Returned:
    """What the call returns. Raises RunError for the product's own errors.

    Ctrl-C ends its Spark jobs; cancel: ends what else it does.
    It runs on a thread of its own: a signal's handler, PySpark's also, cannot use the JVM during a call of its thread.
    """
    tag = f"supply-{uuid.uuid4().hex[:12]}"

    def tagged() -> _Returned:
        context.addJobTag(tag)
        return call()

    returned = in_thread("supply: a call of the JVM", tagged)
    try:
        concurrent.futures.wait([returned])
    except BaseException:
        cancel_jobs(context, tag, [returned], _CANCEL_SECONDS, cancel)
        raise
    if error := returned.exception():
        raise _of_python(error)
    return returned.result()


def _of_python(error: BaseException) -> BaseException:
    java = getattr(error, "java_exception", None)
    if java is None or not java.getClass().getName().startswith("supply."):
        return error
    known = (RunTimeoutError if is_timeout(java) else RunError)(java.getMessage())
    known.__cause__ = error
    return known


def is_timeout(java: Any) -> bool:
    """Whether an exception of this product's JVM says that a limit has passed."""
    return bool(java.getClass().getName().startswith("supply.core.") and java.isTimeout())
