"""Many pairs, many runs in a row, and a full file system."""

import os
import signal

import pytest

from fail_point import wait_until_stopped
from pairs import Pairs
from small_file_system import fill


def test_fifty_pairs_on_one_node(start_run):
    start_run(ranks=50, epochs=2).ends_well()


@pytest.mark.long
def test_fifty_pairs_when_an_executor_dies(start_run, fault):
    point = fault("P3", "kill", after=500)
    run = start_run(ranks=50, epochs=30)
    point.taken()
    run.ends_well()


# The process that is killed in the middle of a run, or None.
@pytest.mark.parametrize(
    "victims",
    [
        pytest.param((None, "rank", None, "task") * 5, marks=pytest.mark.long, id="20 runs"),
        pytest.param((None, "rank", "task", None), id="4 runs"),
    ],
)
def test_runs_with_the_same_config_files_one_after_the_other(make_pairs, start_run, fault, victims):
    pairs = make_pairs(2, ring="16KiB", block="4KiB")
    for victim in victims:
        point = fault({"rank": "C1", "task": "P1"}[victim], "kill", after=50) if victim else None
        run = start_run(pairs=pairs, epochs=10, faulty_ranks=[0], endless=victim == "rank")
        if victim:
            point.taken()
        if victim == "rank":
            assert "ended before it had taken all its data" in run.fails()
            assert run.finish_ranks() == [-signal.SIGKILL, 1]
        else:
            run.ends_well()


def test_a_run_that_fails_does_not_end_another_one_in_the_same_spark(start_run, fault):
    other = start_run(epochs=20)
    slow = other.ranks[0].process
    slow.send_signal(signal.SIGSTOP)
    point = fault("C1", "kill", after=50)
    failing = start_run(endless=True, faulty_ranks=[1])
    point.taken()
    assert "ended before it had taken all its data" in failing.fails()
    slow.send_signal(signal.SIGCONT)
    other.ends_well()
    # Like every killed rank it has left its files.
    failing.pairs.clean()


@pytest.mark.long
def test_a_rank_and_its_executor_die_together(start_run, fault, counted):
    point = fault("P3", "stop", after=50)
    run = start_run(ranks=1, endless=True, timeout=15)
    executor = point.taken()
    wait_until_stopped(executor)
    # The rank first: its task must not notice that.
    run.ranks[0].process.kill()
    counted()
    os.kill(executor, signal.SIGKILL)
    text = run.fails()
    assert (
        "their rank is dead, and no new rank has opened it" in text
        and "waited 15 s" in text
        and "--rank-timeout" in text
    )
    assert run.finish_ranks() == [-signal.SIGKILL]
    run.pairs.clean()


def test_a_file_system_that_fills_up_later_does_not_matter(make_small_file_system, start_run, fault):
    folder = make_small_file_system("1m")
    pairs = Pairs(folder / "run", 2, ring="64KiB", block="16KiB")
    # A task is stopped meanwhile: the run must not end before the file system is full.
    point = fault("P3", "stop", after=20)
    run = start_run(pairs=pairs, epochs=20)
    executor = point.taken()
    wait_until_stopped(executor)
    fill(folder)
    os.kill(executor, signal.SIGCONT)
    run.ends_well()
    assert pairs.left_behind() == []
