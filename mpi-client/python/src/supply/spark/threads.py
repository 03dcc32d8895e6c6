"""Calls into the JVM on threads of their own."""

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import InheritableThread

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
