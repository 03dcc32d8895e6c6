"""Calls into the JVM that Ctrl-C ends, and whose errors are SupplierErrors."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark import InheritableThread

from supply.errors import SupplierError

# How long a cancelled job may take to end.
_CANCEL_SECONDS = 10

_Returned = TypeVar("_Returned")


def run_cancellable(
    context: Any, call: Callable[[], _Returned], cancel: Callable[[], None] = lambda: None
) -> _Returned:
    """What the call returns. Raises SupplierError for the product's own errors.

    Ctrl-C ends its Spark jobs; cancel: ends what else it does.
    It runs on a thread of its own: a signal's handler, PySpark's also, cannot use the JVM during a call of its thread.
    """
    tag = f"supply-{uuid.uuid4().hex[:12]}"
    returned: list[_Returned] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            context.addJobTag(tag)
            returned.append(call())
        except BaseException as error:
            raised.append(error)

    thread = InheritableThread(target=run, name="supply: a call of the JVM", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        cancel()
        context.cancelJobsWithTag(tag)
        thread.join(_CANCEL_SECONDS)
        raise
    if raised:
        raise _of_python(raised[0])
    return returned[0]


def _of_python(error: BaseException) -> BaseException:
    java = getattr(error, "java_exception", None)
    if java is None or not java.getClass().getName().startswith("supply."):
        return error
    known = SupplierError(java.getMessage())
    known.__cause__ = error
    return known
