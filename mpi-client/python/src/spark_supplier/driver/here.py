"""launcher="here": the one rank is the caller's thread of the program, for a debugger and for a first print.

What drives a call, here as for other launchers, is on a thread of its own. The rank talks to it through the hub, as a
process would.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from spark_supplier.driver.failures import NotAgain
from spark_supplier.driver.launcher import TorchLauncher
from spark_supplier.driver.placement import wait_for_slots
from spark_supplier.driver.rank_pool import END_SECONDS
from spark_supplier.driver.sessions import Session, in_thread
from spark_supplier.driver.spark_jobs import SparkJobs
from spark_supplier.driver.turns import Needs
from spark_supplier.errors import RankError, RunError, SupplyError
from spark_supplier.node.hub import connect, connect_file
from spark_supplier.node.job import Job
from spark_supplier.node.messages import Begin, End, Leave, NodeFailed, NodeStarted, RankIdle, Work
from spark_supplier.node.output import CallFiles
from spark_supplier.node.process_group import end_process_group, is_initialized
from spark_supplier.node.rank import Rank
from spark_supplier.node.rank_data import RankData
from spark_supplier.node.run_files import RunFiles

# How soon Ctrl-C, and the end of a call, are noticed.
_TICK_SECONDS = 0.1
_INTERRUPTED = "the call was interrupted"
_POLL_SECONDS = 0.005

_Value = TypeVar("_Value")


class HereLauncher(TorchLauncher):
    """A Launcher of one rank, which another thread is. begin: gets what connects the rank to the hub, and post()."""

    prints_itself = True

    def __init__(self, begin: Callable[[dict[str, str], Callable[[Any], None]], None]) -> None:
        super().__init__(1)
        self._begin = begin

    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        if session.is_connect or not session.is_local:
            raise RunError(
                "launcher='here' needs Spark in local mode, with master local[*] and without Spark Connect, so that "
                f"its tasks are on this machine: the master is {session.master}. Leave launcher out"
            )
        self._hosts = {host: [0] for host in wait_for_slots(session, 1, tasks_per_rank, timeout, option)}
        return 1

    def needs(self, tasks_per_rank: int) -> Needs:
        fed = dict.fromkeys(self._hosts, tasks_per_rank)
        return Needs(fed, fed if tasks_per_rank else {}, dict.fromkeys(self._hosts, 1))

    def slots(self, tasks_per_rank: int) -> int:
        return tasks_per_rank

    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        [host] = self._hosts
        threading.Thread(target=_keep_files, args=(files, environment, host), daemon=True).start()
        self._begin({**environment, "SUPPLY_HOST": host}, post)


def _keep_files(files: RunFiles, environment: Mapping[str, str], host: str) -> None:
    """What a node process does, without ranks."""
    driver = connect(environment)
    try:
        driver.send(NodeStarted(host))
        of_calls = CallFiles(driver, driver, 1, host)
        while isinstance(message := driver.receive(), (Begin, End)):
            of_calls.take(message)
    except RunError as error:
        driver.send(NodeFailed(str(error)))
    finally:
        files.remove_with_calls()
        driver.close()


class HereRank(Rank):
    """The rank of one call. job: not pickled, so that its functions are the program's own."""

    def __init__(self, environment: Mapping[str, str], job: Job) -> None:
        super().__init__(connect(environment), partial(connect_file, environment))
        self._job = job
        self._had_group = is_initialized()

    def run(self) -> BaseException | None:
        """Calls the function. Returns what it has raised."""
        self._send_started()
        work = self._driver.receive()
        if not isinstance(work, Work):
            # What drives the call knows why.
            return None
        threading.Thread(target=self._follow, name="supply: follow", daemon=True).start()
        if self._call(work):
            self._driver.send(RankIdle(0))
        else:
            self._end_group()
        return self.raised

    def close(self) -> None:
        self._driver.close()

    def _job_of(self, work: Work) -> Job:  # noqa: ARG002  as of a process
        return self._job

    def _end_group(self) -> None:
        if not self._had_group:
            end_process_group()

    def _follow(self) -> None:
        """What ends the call ends Spark's job, and so the function's next wait for rows."""
        while (message := self._driver.receive()) is not None:
            if isinstance(message, Leave):
                self._all_left.set()
        self._all_left.set()

    def _leave(self, data: RankData) -> None:
        try:
            for dataset in data._datasets():
                if not dataset._is_closed and not self._receives_rest(dataset._opened()):
                    data.abort("every rank has returned")
                    return
            data.close()
        except SupplyError:
            data.abort("this rank has returned")

    def _receives_rest(self, reader: Any) -> bool:
        """False: nobody needs it."""
        while not reader.at_end_of_data:
            if self._all_left.is_set():
                return False
            if reader.is_ready():
                reader.next_block()
            else:
                time.sleep(_POLL_SECONDS)
        return True


class Here:
    """A call whose rank is this thread."""

    def __init__(self, job: Job, environment: Mapping[str, str]) -> None:
        self._job = job
        self._environment = environment
        self._begun: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
        self._post: Callable[[Any], None] = lambda message: None
        self._is_interrupted = False

    def launcher(self) -> HereLauncher:
        return HereLauncher(self._begin)

    def _begin(self, environment: dict[str, str], post: Callable[[Any], None]) -> None:
        if self._is_interrupted:
            raise NotAgain(_INTERRUPTED)
        self._post = post
        self._begun.put(environment)

    def _interrupt(self) -> None:
        """Ends what drives the call."""
        self._is_interrupted = True
        self._post(NotAgain(_INTERRUPTED))

    def result(self, session: Session, drive: Callable[[], _Value]) -> _Value:
        """What drive() returns, on a thread beside the rank."""
        driving = in_thread(session, "supply: drive a call", drive)
        raised: BaseException | None = None
        try:
            while not driving.done():
                with contextlib.suppress(queue.Empty):
                    raised = self._run(self._begun.get(timeout=_TICK_SECONDS), driving)
        except BaseException:
            self._interrupt()
            # If Spark has no slots for it, it waits for them.
            concurrent.futures.wait([driving], END_SECONDS)
            raise
        try:
            return driving.result()
        except RunError as error:
            if raised is not None and not isinstance(raised, Exception):
                raise raised from None
            if raised is not None and isinstance(error, RankError):
                # With its frames, for a debugger.
                error.__cause__ = raised
            raise

    def _run(self, environment: Mapping[str, str], driving: concurrent.futures.Future[Any]) -> BaseException | None:
        with _as_rank({**self._environment, "SUPPLY_HOST": environment["SUPPLY_HOST"]}):
            try:
                rank = HereRank(environment, self._job)
            except SystemExit:
                # The call has failed meanwhile, and its run at the hub is gone.
                return None
            with contextlib.closing(rank):
                raised = rank.run()
                if raised is not None and not isinstance(raised, Exception):
                    self._interrupt()
                concurrent.futures.wait([driving])
            return raised


@contextlib.contextmanager
def _as_rank(given: Mapping[str, str]) -> Iterator[None]:
    """The environment of a rank, and afterwards the program's own, with its arguments and path."""
    before, arguments, path = dict(os.environ), list(sys.argv), list(sys.path)
    numbers = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0"}
    os.environ.update({**numbers, **given})
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        sys.argv, sys.path[:] = arguments, path
