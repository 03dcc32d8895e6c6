"""Calls into the JVM that Ctrl-C ends, and whose errors are RunErrors."""

from __future__ import annotations

import concurrent.futures
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from supply.errors import RunError, RunTimeoutError
from supply.spark.threads import cancel_jobs, in_thread

# How long a cancelled call may take to end.
_CANCEL_SECONDS = 10

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
