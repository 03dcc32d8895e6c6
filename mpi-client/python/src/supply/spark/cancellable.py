"""Calls into the JVM that Ctrl-C ends, and whose errors are RunErrors."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JError

from supply.errors import RunError, RunTimeoutError
from supply.spark.threads import in_thread

# How long a cancelled call may take to end, and when it is cancelled again until then.
_CANCEL_SECONDS = 10
_AGAIN_SECONDS = 0.5

_Returned = TypeVar("_Returned")


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
        end = time.monotonic() + _CANCEL_SECONDS
        while not returned.done() and time.monotonic() < end:
            # Not once: what it ends may not have begun yet.
            # Spark may have stopped (None), and its JVM, too.
            with contextlib.suppress(Py4JError, OSError, AttributeError):
                cancel()
                context.cancelJobsWithTag(tag)
            concurrent.futures.wait([returned], _AGAIN_SECONDS)
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
