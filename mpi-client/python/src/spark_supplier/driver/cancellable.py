"""Calls into the JVM on threads of their own, that Ctrl-C ends, and whose errors are RunErrors."""

from __future__ import annotations

import concurrent.futures
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from spark_supplier.driver.sessions import Session, SparkFailure, in_thread
from spark_supplier.errors import RunError, RunTimeoutError

# When jobs are cancelled again.
_AGAIN_SECONDS = 0.5

_Returned = TypeVar("_Returned")


def cancel_jobs(
    session: Session, tag: str, calls: Sequence[Future[Any]], seconds: float, also: Callable[[], None] = lambda: None
) -> bool:
    """Cancels the Spark jobs with this tag until these calls have ended. False: one has not after that time.

    also: ends what else the calls do.
    """
    end = time.monotonic() + seconds
    while (running := concurrent.futures.wait(calls, 0).not_done) and time.monotonic() < end:
        # Not once: what it ends may not have begun yet.
        also()
        session.cancel(tag)
        concurrent.futures.wait(running, _AGAIN_SECONDS)
    return not concurrent.futures.wait(calls, 0).not_done


# How long a cancelled call may take to end.
_CANCEL_SECONDS = 10


def run_cancellable(
    session: Session,
    call: Callable[[], _Returned],
    cancel: Callable[[], None] = lambda: None,
    run: str = "",
    part: str = "",
) -> _Returned:
    """What the call returns. Raises RunError for the product's own errors.

    Ctrl-C ends its Spark jobs; cancel: ends what else it does. run, part: as of Session.failure().
    It runs on a thread of its own: a signal's handler, PySpark's also, cannot use the JVM during a call of its thread.
    """
    tag = f"supply-{uuid.uuid4().hex[:12]}"

    def tagged() -> _Returned:
        session.tag(tag)
        return call()

    returned = in_thread(session, "supply: a call of the JVM", tagged)
    try:
        concurrent.futures.wait([returned])
    except BaseException:
        cancel_jobs(session, tag, [returned], _CANCEL_SECONDS, cancel)
        raise
    if error := returned.exception():
        raise _of_python(error, session.failure(error, run, part))
    return returned.result()


def _of_python(error: BaseException, failure: SparkFailure) -> BaseException:
    if failure.name is None:
        return error
    known = (RunTimeoutError if failure.has_passed else RunError)(failure.text)
    known.__cause__ = error
    return known
