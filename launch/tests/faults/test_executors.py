"""Executors die in the middle of partitions, stall, and continue after others have got their tasks."""

import os
import signal

import pytest

from fail_point import is_gone, wait_until_stopped
from ranks import END_OF_PATIENCE, one_line
from waiting import wait_until

# Some thousand blocks.
LONG = 60

# Longer than a test may take: a side that waits for this timeout fails the test.
LONG_TIMEOUT = 2 * END_OF_PATIENCE


@pytest.mark.long
def test_executors_die_in_the_middle_of_partitions(start_run, fault):
    point = fault("P2", "kill", after=150)
    run = start_run(epochs=LONG)
    killed = point.taken()
    for step in ("P3", "P4"):
        wait_until(lambda: is_gone(killed))
        fault(step, "kill", after=150)
        killed = point.taken()
    run.ends_well()


def test_executors_die_while_ranks_read_in_place(start_run, fault):
    point = fault("P3", "kill", after=40)
    run = start_run("--in-place", epochs=LONG)
    killed = point.taken()
    wait_until(lambda: is_gone(killed))
    fault("P2", "kill", after=40)
    point.taken()
    run.ends_well()


def given_to_another(cluster, start_run, fault):
    """Returns a run, and an executor that is stopped until Spark has given its tasks to another executor."""
    point = fault("P3", "stop", after=150)
    run = start_run(epochs=LONG)
    zombie = point.taken()
    wait_until_stopped(zombie)
    published = run.published_by(zombie)
    assert published
    wait_until(cluster.failed_attempts)
    assert run.published_by(zombie) == published
    return run, zombie


def test_an_executor_comes_back_after_its_tasks_were_given_to_another(cluster, start_run, fault):
    run, zombie = given_to_another(cluster, start_run, fault)
    os.kill(zombie, signal.SIGCONT)
    run.ends_well()


@pytest.mark.long
def test_an_executor_stalls_until_spark_kills_it(cluster, start_run, fault):
    run, zombie = given_to_another(cluster, start_run, fault)
    wait_until(lambda: is_gone(zombie))
    run.ends_well()


def test_a_rank_is_told_of_a_failure_while_the_executor_that_feeds_it_stalls(cluster, start_run, fault):
    point = fault("P3", "stop", after=50)
    run = start_run(ranks=1, endless=True, timeout=LONG_TIMEOUT)
    stalled = point.taken()
    wait_until_stopped(stalled)
    cluster.cancel_all_jobs()
    text = run.fails()
    assert "cancelled" in text
    assert run.finish_rank(0) == 1
    assert text in one_line(run.ranks[0])
    os.kill(stalled, signal.SIGCONT)
