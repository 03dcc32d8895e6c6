"""MatrixRanks whose ranks end, fail, are killed, or never start: what the program is told, and what is left."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import threading
import time

import pytest
from spark_supplier import RunError
from spark_supplier.driver.sessions import run_cancellable, session_of
from spark_supplier.offload import MatrixRanks, release

from rank_server import NUMBERS, RANKS, SERVER, skip_without_server, started
from supplier_session import processes_of_tests, session_fixture, shared_memory
from task import wait_until

skip_without_server()
spark = session_fixture(2)


def servers():
    """Process ids of this test's ranks."""
    found = []
    for process in processes_of_tests():
        with contextlib.suppress(OSError):
            if (process / "exe").resolve() == SERVER:
                found.append(int(process.name))
    return sorted(found)


def send(folder, command):
    """A command by hand to all ranks: the lines of rank 0's answer."""
    sockets = []
    for path in sorted(pathlib.Path(folder).glob("*/matrix-*.mapped.server")):
        sockets.append(socket.socket(socket.AF_UNIX))
        sockets[-1].settimeout(60)
        sockets[-1].connect(str(path))
        sockets[-1].sendall(json.dumps({"id": command["command"], **command}).encode() + b"\n")
    with contextlib.ExitStack() as stack:
        for one in sockets:
            stack.enter_context(one)
        for line in stack.enter_context(sockets[0].makefile()):
            yield json.loads(line)


@contextlib.contextmanager
def unusable_pair(folder, rank):
    """A rank that cannot open its pair, alone."""
    (file,) = (
        run / f"matrix-{rank}.mapped"
        for run in pathlib.Path(folder).iterdir()
        if (run / "matrix-0.mapped.server").exists()
    )
    file.mkdir()
    yield
    file.rmdir()


def test_rows_outlive_the_ranks(spark, libraries, numbers):
    with shared_memory() as folder:
        from spark_supplier.offload import MatrixRanks

        with MatrixRanks(spark, RANKS, libraries=libraries, server=SERVER, folder=folder, timeout=60) as ranks:
            df = ranks.matrix(numbers, features=["id"], key="twice").to_df()
        assert df.where("key = 2 * row[0]").count() == NUMBERS
        release(df)


def test_one_rank_that_cannot_open_its_pair_fails_the_command_on_all(spark, libraries, numbers):
    with (
        shared_memory() as folder,
        MatrixRanks(spark, RANKS, libraries=libraries, server=SERVER, folder=folder, timeout=60) as ranks,
    ):
        with unusable_pair(folder, 1), pytest.raises(RunError, match="rank 1: .* is not a regular file"):
            ranks.matrix(numbers, features="features")
        matrix = ranks.matrix(numbers, features="features")
        # A result needs no pair.
        with unusable_pair(folder, 1):
            rows = matrix.to_df()
            assert rows.count() == NUMBERS
        release(rows)
        assert not list(pathlib.Path(folder).glob("*-results-*"))
        assert matrix.to_numpy().shape == (NUMBERS, 3)


@pytest.mark.long
def test_a_rank_that_ends_first_sends_heartbeats_until_the_last_one_has_ended(spark, libraries):
    with started(spark, libraries, timeout=10) as ranks:
        assert ranks.call("linger", seconds=12) == ()


def test_heartbeats_say_the_step_and_of_how_many(spark, libraries):
    others = servers()
    with (
        shared_memory() as folder,
        pytest.raises(RunError, match="all matrices of these ranks are gone"),
        MatrixRanks(spark, RANKS, libraries=libraries, server=SERVER, folder=folder, timeout=60) as ranks,
    ):
        program = {"program": "stranger", "take_over": True}
        assert any("done" in line for line in send(folder, {"command": "attach", **program}))
        call = {"command": "call", "library": "libroutines.so", "routine": "deaf", "handle": 1}
        lines = send(folder, {**call, **program})
        assert {"progress": 1 / 3, "step": 1, "of": 3} in [next(lines), next(lines)]
        # A signal ends a routine that does not ask whether it was cancelled.
        os.kill(next(process for process in servers() if process not in others), signal.SIGTERM)
        while next(lines, None) is not None:
            pass
        ranks.call("wait", library="libroutines.so")


def test_the_last_words_of_a_rank_are_in_the_error(spark, libraries):
    with (
        started(spark, libraries) as ranks,
        pytest.raises(RunError, match=r"(?s)signal: SIGABRT.*has not declared the parameter 'undeclared'"),
    ):
        ranks.call("blunder")


def test_a_crash_is_told_with_rank_and_signal(spark, libraries, numbers):
    with started(spark, libraries) as ranks:
        matrix = ranks.matrix(numbers, features="features")
        with pytest.raises(RunError, match="rank 1 on node .* was ended in the routine crash by signal: SIGSEGV"):
            ranks.call("crash", rank=1)
        with pytest.raises(RunError, match="all matrices are gone: rank 1"):
            matrix.to_numpy()
    gone = "by signal: SIGSEGV; all matrices of these ranks are gone"
    with started(spark, libraries) as ranks, pytest.raises(RunError, match=gone):
        ranks.call("crash", rank=-1)


@pytest.mark.parametrize("rank", [1, 0])
def test_a_routine_that_ends_its_rank_is_told(spark, libraries, rank):
    ended = f"rank {rank} on node .* was ended in the routine leave by exit\\(\\); all matrices of these ranks are gone"
    with started(spark, libraries) as ranks, pytest.raises(RunError, match=ended):
        ranks.call("leave", rank=rank)


def test_a_killed_rank_is_told(spark, libraries):
    others = servers()
    with started(spark, libraries) as ranks:
        os.kill(next(process for process in servers() if process not in others), signal.SIGKILL)
        with pytest.raises(RunError, match="all matrices of these ranks are gone"):
            ranks.call("wait")


def test_ctrl_c_cancels_a_routine(spark, libraries, numbers):
    with started(spark, libraries) as ranks:
        threading.Timer(3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            ranks.call("wait")
        assert ranks.matrix(numbers, features="features").shape == (NUMBERS, 3)


def test_ctrl_c_cancels_again_what_had_not_begun(spark):
    cancels: list[None] = []

    def call():
        wait_until("a second cancel, since the first one came too early", lambda: len(cancels) > 1)

    threading.Timer(1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run_cancellable(session_of(spark), call, lambda: cancels.append(None))
    assert len(cancels) == 2


def test_a_server_that_does_not_start_says_why(spark, libraries):
    with shared_memory() as folder:
        with pytest.raises(RunError, match="there is no program 'no-server'"):
            MatrixRanks(spark, 1, server="no-server", folder=folder)
        long = pathlib.Path(folder, "x" * 90)
        long.mkdir()
        with pytest.raises(RunError, match="supply-server did not start: .*has more than 107 bytes"):
            MatrixRanks(spark, 1, server=SERVER, libraries=libraries, folder=long)
        long.rmdir()


def test_ranks_leave_nothing_and_may_be_closed_twice(spark, libraries):
    others = servers()
    with started(spark, libraries) as ranks:
        assert len(servers()) == len(others) + RANKS
        ranks.close()
    end = time.monotonic() + 60
    while servers() != others and time.monotonic() < end:
        time.sleep(0.1)
    assert servers() == others
