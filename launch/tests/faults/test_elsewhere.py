"""Ranks elsewhere: their connections are cut, and a rank, an executor or the driver dies."""

import os
import signal
import time

import pytest

from linked_run import linked  # noqa: F401  a fixture
from waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can cut a connection of another process (ss -K)")

ENDLESS = 1_000_000


def test_connections_are_cut_again_and_again(linked, counted):  # noqa: F811
    run = linked(epochs=400)
    run.wait_for_bytes()
    cuts = 0
    while cuts < 20 and run.is_running():
        cuts += run.cut(cuts % 2)
        time.sleep(0.1)
    assert cuts > 1
    counted(cuts)
    run.ends_well()


@pytest.mark.long
def test_an_executor_dies_and_its_task_runs_elsewhere(linked, counted):  # noqa: F811
    run = linked(epochs=400)
    run.wait_for_bytes()
    os.kill(min(run.executors()), signal.SIGKILL)
    counted()
    run.ends_well()


@pytest.mark.long
def test_a_rank_dies(linked, counted):  # noqa: F811
    run = linked(epochs=ENDLESS, options=["--reconnect-timeout", "3"])
    run.wait_for_bytes()
    run.ranks[0].process.kill()
    counted()
    assert run.program.finish() == 3
    assert "rank 0" in run.program.failure()
    assert run.finish_ranks() == [-signal.SIGKILL, 1]
    assert "rank 0" in run.ranks[1].error


@pytest.mark.long
def test_a_rank_dies_and_another_comes(linked, counted):  # noqa: F811
    run = linked(epochs=40, options=["--reconnect-timeout", "3", "--wait-for-rank"])
    run.wait_for_bytes(10_000)
    run.ranks[0].process.kill()
    counted()
    wait_until(lambda: run.ranks[0].process.poll() is not None)
    run.restart_rank(0)
    run.ends_well()


@pytest.mark.long
def test_the_driver_dies(linked, counted):  # noqa: F811
    run = linked(epochs=ENDLESS, timeout=40)
    run.wait_for_bytes()
    os.killpg(run.program.process.pid, signal.SIGKILL)
    counted()
    for number, error in enumerate(run.errors()):
        assert f"no Spark task has met rank {number} (supply://127.0.0.3:" in error and "refused" in error
