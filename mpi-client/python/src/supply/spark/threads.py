"""Calls into the JVM on threads of their own."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pyspark import InheritableThread

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
