"""Executors die, and tasks throw, in later epochs of resident blocks (--resident)."""

import os
import signal

import pytest

import headers
from fail_point import is_gone, wait_until_stopped
from waiting import wait_until

EPOCHS = 40


@pytest.fixture
def start_resident(make_pairs, start_run):
    """Two ranks of some thirty blocks an epoch."""
    return lambda epochs=EPOCHS: start_run(
        "--resident", pairs=make_pairs(2, ring="512KiB", block="4KiB"), epochs=epochs
    )


def later_epoch(run, process):
    """Whether a pair that this executor feeds has resident blocks, and has published more blocks than these."""
    fed = [rank for rank in run.ranks if headers.read(run.pairs.mapped_file(rank), "task_pid") == process]

    def is_later(rank):
        first, count, published = (
            headers.read(run.pairs.mapped_file(rank), field)
            for field in ("resident_first", "resident_count", "published")
        )
        return count > 0 and published > first + count

    return any(map(is_later, fed))


@pytest.mark.parametrize("step", ["P3", *(pytest.param(step, marks=pytest.mark.long) for step in ("P1", "P2", "P4"))])
def test_an_executor_is_killed_in_a_later_epoch(start_resident, fault, step):
    # If one executor feeds both ranks, one rank has had at least half of these: more than an epoch, far from all.
    point = fault(step, "stop", after=300)
    run = start_resident()
    process = point.taken()
    wait_until_stopped(process)
    assert later_epoch(run, process)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: is_gone(process))
    run.ends_well()


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.long) for step in ("P1", "P2", "P3", "P4")])
def test_a_task_throws_at_any_block_of_the_first_epochs(start_resident, fault, step):
    for after in range(0, 75, 5):
        point = fault(step, "throw", after=after)
        run = start_resident()
        point.taken()
        run.ends_well()


@pytest.mark.long
def test_executors_die_one_after_the_other(start_resident, fault):
    point = fault("P3", "kill", after=100)
    # The run must not end before the third executor has started.
    run = start_resident(epochs=10 * EPOCHS)
    for step in ("P2", "P4"):
        killed = point.taken()
        wait_until(lambda: is_gone(killed))
        fault(step, "kill", after=100)
    point.taken()
    run.ends_well()
