"""What the package needs of a Spark session: of Spark Classic through py4j, of Spark Connect by the data source.

Every question goes to one object of the driver's JVM, supply/api/Calls.scala.
"""

from __future__ import annotations

import abc
import concurrent.futures
import contextlib
import functools
import json
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import pyspark
from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_supplier.arguments import shown
from spark_supplier.driver import jar
from spark_supplier.driver.hub_key import KeyAgreement, proof
from spark_supplier.errors import RunError, RunTimeoutError
from spark_supplier.node import exceptions

# What a call raises if the session has ended, or its JVM, or the server of Spark Connect (ValueError: the channel).
_GONE = (Py4JError, OSError, AttributeError, PySparkException, ValueError)


@dataclass(frozen=True)
class Slots:
    """What the registered executors offer, by host.

    slots: of tasks, busy or free; starter_slots: of tasks without a GPU. gpus: addresses of those that Spark assigned.
    busy: slots that have a task. is_complete: no other will register. impossible: why no task can ever run.
    """

    slots: dict[str, int]
    starter_slots: dict[str, int]
    gpus: dict[str, list[str]]
    busy: int
    is_complete: bool
    impossible: str | None


@dataclass(frozen=True)
class SparkFailure:
    """An exception of Spark's. text: one line.

    name: of the class of this product's exception that it is or has as a cause; None: there is none. has_passed: a
    limit of the user. is_of_missing_file: a file was not there.
    """

    text: str
    name: str | None = None
    has_passed: bool = False
    is_of_missing_file: bool = False

    @staticmethod
    def of_json(answer: dict[str, Any]) -> SparkFailure:
        return SparkFailure(
            answer["text"], answer.get("name"), answer.get("timeout", False), answer.get("missingFile", False)
        )


def _told(name: str) -> Any:
    """What the session says of itself under that name."""
    return property(lambda session: session._about.get(name))


class Session(abc.ABC):
    """Of Spark Classic, or of Spark Connect. Any thread may call it.

    keys: of runs at the hub and of ranks, by their names, of all sessions of this process.
    """

    is_connect = False
    keys: ClassVar[weakref.WeakValueDictionary[str, KeyAgreement]] = weakref.WeakValueDictionary()

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    @abc.abstractmethod
    def call(self, name: str, words: Mapping[str, Any], seconds: float | None = 0) -> bytes:
        """The answer to a call of Calls.scala with these arguments.

        seconds: how long it waits in the driver, at most; None: that is not known. Raises RunTimeoutError if the server
        of Spark Connect is gone.
        """

    def ask(self, name: str, /, **words: Any) -> dict[str, Any]:
        """The answer to a call, in JSON."""
        answer: dict[str, Any] = json.loads(self.call(name, words))
        return answer

    def ask_if_there(self, name: str, /, **words: Any) -> dict[str, Any]:
        """As ask(). Empty if the session has ended."""
        with contextlib.suppress(*_GONE):
            return self.ask(name, **words)
        return {}

    def options(self, name: str, words: Mapping[str, Any]) -> dict[str, str]:
        """Of the data source, for a call: with a proof if it names a run or ranks of this process."""
        text = json.dumps(words)
        agreement = self.keys.get(words.get("run") or "") or self.keys.get(words.get("ranks") or "")
        proven = {} if agreement is None else {"proof": proof(agreement.key, name, text)}
        return {"call": name, "json": text, **proven}

    @functools.cached_property
    def _about(self) -> dict[str, Any]:
        return self.ask("session")

    application: str = _told("application")
    master: str = _told("master")
    # Whether there is one executor, on the driver's machine.
    is_local: bool = _told("local")
    # Whether Spark starts executors for waiting tasks only, and ends those that have none.
    is_dynamic: bool = _told("dynamic")
    # OMP_NUM_THREADS in the environment of the driver's JVM, or nothing.
    threads_of_driver: str = _told("threads")
    # Of the resource profile that a starter needs, which has cores alone. None: it needs none.
    cores_of_starter: float | None = _told("coresOfStarter")
    # After which Spark ends a Python worker that says nothing. 0: it does not.
    idle_seconds: float = _told("idleSeconds")

    def setting(self, name: str) -> str | None:
        """A setting of Spark; None: it is not set."""
        found: str | None = self.spark.conf.get(name, None)
        return found

    def slots(self, run: str = "", tasks: int = 0, hosts: Sequence[str] = ()) -> Slots:
        """run, tasks: for as many tasks of that run, if it is open at the hub, Spark is asked for executors.

        tasks 0: no more. hosts: of the tasks; none: any.
        """
        try:
            found = self.ask("slots", run=run, tasks=tasks, hosts=list(hosts))
        except _GONE as error:
            raise RunError(f"Spark does not say what its executors offer: {self.failure(error).text}") from error
        return Slots(
            found["slots"], found["starterSlots"], found["gpus"], found["busy"], found["complete"],
            found.get("impossible"),
        )  # fmt: skip

    def holders(self) -> str:
        """The jobs that have tasks now, for a text. Without those that keep ranks. Empty if the session has ended."""
        return str(self.ask_if_there("holders").get("text", ""))

    @abc.abstractmethod
    def failure(self, error: BaseException, run: str = "", part: str = "") -> SparkFailure:
        """What an exception is that Spark has raised in a part of a run at the hub."""

    @abc.abstractmethod
    def tag(self, name: str) -> None:
        """Spark's jobs of this thread get the tag from now on."""

    def cancel(self, tag: str) -> None:
        """Cancels the jobs with the tag. Does nothing if the session has ended."""
        with contextlib.suppress(*_GONE):
            self._cancel(tag)

    @abc.abstractmethod
    def _cancel(self, tag: str) -> None: ...

    def thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        """A thread that has Spark's properties and tags of this one."""
        thread: threading.Thread = InheritableThread(target=target, name=name, daemon=True)
        return thread

    @abc.abstractmethod
    def check_running(self, what: str) -> None:
        """Refuses a session that was stopped, or whose JVM is gone. what: for the text."""

    @abc.abstractmethod
    def check(self, what: str) -> None:
        """The same, and one that does not have the jar of this version."""


_Returned = TypeVar("_Returned")


def in_thread(session: Session, name: str, call: Callable[[], _Returned]) -> Future[_Returned]:
    """Runs the call on a thread that has Spark's properties of this one. The process does not wait for it to exit.

    A future and no join(): before Python 3.13, a thread seems to have ended when Ctrl-C has interrupted its join().
    """
    future: Future[_Returned] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    session.thread(name, run).start()
    return future


def stopped(what: str) -> RunError:
    return RunError(f"{what} was stopped: make a session with spark_supplier.session(), and read the data again there")


class ClassicSession(Session):
    def __init__(self, spark: Any) -> None:
        super().__init__(spark)
        self.context = spark.sparkContext

    @property
    def jvm(self) -> Any:
        return self.context._jvm

    @functools.cached_property
    def is_local(self) -> bool:  # type: ignore[override]
        # Without the jar, too: a TorchModel needs none.
        return bool(self.context._jsc.isLocal())

    def call(self, name: str, words: Mapping[str, Any], seconds: float | None = 0) -> bytes:  # noqa: ARG002  of Connect
        answer: bytes = self.jvm.supply.api.Calls.answer(self.spark._jsparkSession, name, json.dumps(words))
        return answer

    def failure(self, error: BaseException, run: str = "", part: str = "") -> SparkFailure:
        # If the JVM is gone, there is nothing to ask.
        with contextlib.suppress(*_GONE):
            java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
            if java is not None:
                calls = self.jvm.supply.api.Calls
                return SparkFailure.of_json(json.loads(calls.describe(self.context._jsc.sc(), java)))
        return _of_text(self, error)

    def tag(self, name: str) -> None:
        self.context.addJobTag(name)

    def _cancel(self, tag: str) -> None:
        self.context.cancelJobsWithTag(tag)

    def check_running(self, what: str) -> None:
        try:
            is_stopped = self.context._jsc is None or self.context._jsc.sc().isStopped()
        except (Py4JError, OSError):
            is_stopped = True
        if is_stopped:
            raise stopped(what)

    def check(self, what: str) -> None:
        self.check_running(what)
        if not jar.has_jar(self.context):
            raise RunError(
                f"{what} does not have the Supplier's jar (ADD JAR gives it to one thread only): call "
                "spark_supplier.session(), which adds it. With spark-submit, give the path of spark_supplier.jars() to "
                "--jars"
            )
        built_for = self.jvm.supply.core.BuiltFor
        if built_for.mismatch():
            raise RunError(f"{built_for.mismatch()}: {built_for.fix()}")


# How Spark Connect names an exception of a class that it does not know.
_OF_CLASS = re.compile(r"\((?:\w+\.)*(\w+)\) (.*)", re.DOTALL)
_ANSWER_SECONDS = 60
_NO_SOURCE = "DATA_SOURCE_NOT_FOUND"


class ConnectSession(Session):
    """is_gone: whether the server is known to answer no more. PySpark tries for minutes to reach it."""

    is_connect = True
    is_gone = False

    def call(self, name: str, words: Mapping[str, Any], seconds: float | None = 0) -> bytes:
        self._require_server()
        reader = self.spark.read.format("supply").options(**self.options(name, words))

        def read() -> bytes:
            answer: bytes = reader.load().toArrow().column(0)[0].as_py()
            return answer

        return read() if seconds is None else self._soon(read, seconds)

    def _soon(self, call: Callable[[], _Returned], seconds: float) -> _Returned:
        self._require_server()
        # PySpark itself tries for ten minutes to reach a server.
        answer = in_thread(self, "supply: a call of the server", call)
        if not concurrent.futures.wait([answer], seconds + _ANSWER_SECONDS).done:
            self.is_gone = True
            self._require_server()
        return answer.result()

    def failure(self, error: BaseException, run: str = "", part: str = "") -> SparkFailure:
        answer = self.ask_if_there("failure", run=run, part=part) if run else {}
        if answer:
            return SparkFailure.of_json(answer)
        found = _OF_CLASS.fullmatch(_message(error))
        if found and found[0].startswith("(supply."):
            return SparkFailure(found[2], found[1])
        return _of_text(self, error)

    def tag(self, name: str) -> None:
        self.spark.addTag(name)

    def _cancel(self, tag: str) -> None:
        self._soon(lambda: self.spark.interruptTag(tag), 0)

    def _require_server(self) -> None:
        if self.is_gone:
            raise RunTimeoutError(
                f"the server of Spark Connect has not answered for {_ANSWER_SECONDS} s: it has ended, or the network "
                "is down"
            )

    def thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        thread: threading.Thread = InheritableThread(target=target, name=name, daemon=True, session=self.spark)
        return thread

    def check_running(self, what: str) -> None:
        if self.spark.is_stopped:
            raise stopped(what)

    def check(self, what: str) -> None:
        if pyspark.__version__.startswith("3."):
            raise RunError("over Spark Connect, supply needs PySpark 4, and a server of it")
        self.check_running(what)
        if self._find() is None:
            jar.give_jar(self)
            if self._find() is None:
                raise jar.server_error("does not have the Supplier's jar, and does not find one of addArtifacts")
        jar.check_server(self, self._about)

    def _find(self) -> dict[str, Any] | None:
        """What the server says of itself; None: it has no jar."""
        try:
            return self._about
        except Exception as error:
            if _NO_SOURCE in str(error):
                return None
            failure = self.failure(error)
            known = "" if failure.name else "the server of Spark Connect does not answer: "
            raise RunError(f"{known}{failure.text}") from error


def _message(error: BaseException) -> str:
    return str(error).split("\n\nJVM stacktrace:")[0].strip()


def _of_text(session: Session, error: BaseException) -> SparkFailure:
    message = _message(error)
    if "Traceback (most recent call last)" in message:
        # Of a Python function's exception, PySpark keeps only the text.
        answer = session.ask_if_there("python-failure", text=message)
        if answer:
            return SparkFailure(answer["text"])
    lines = [line.strip() for line in exceptions.text_of(error).splitlines() if line.strip()]
    return SparkFailure(f"{type(error).__name__}{': ' if lines else ''}{' '.join(lines[:1])}")


def is_of_connect(value: Any) -> bool:
    """Whether a session or DataFrame is of Spark Connect."""
    return type(value).__module__.startswith("pyspark.sql.connect")


def session_of(spark: Any) -> Session:
    """spark: a SparkSession."""
    if is_of_connect(spark):
        return ConnectSession(spark)
    if not isinstance(spark, SparkSession):
        raise RunError(f"{shown(spark)} is no SparkSession: pass that of your program, or spark_supplier.session()")
    return ClassicSession(spark)


# When jobs are cancelled again.
_AGAIN_SECONDS = 0.5


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
