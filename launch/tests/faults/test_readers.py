"""Ranks that read one ring, while the task that supplies them, or one of them, dies or is stopped at a step."""

import signal

import pytest

from fail_point import TASK_STEPS, is_gone
from ranks import one_line
from test_steps import let_go_on, passings, steps
from waiting import wait_until

SHARE = 2


@pytest.fixture
def start_shared(start_run, monkeypatch):
    """A run of two groups of two ranks."""
    monkeypatch.setenv("SUPPLY_SHARE", str(SHARE))
    return lambda **settings: start_run("--share", SHARE, ranks=2 * SHARE, **settings)


@pytest.mark.parametrize("step", steps(TASK_STEPS, "A3", "A5", "P3"))
def test_an_executor_is_killed(start_shared, fault, step):
    point = fault(step, "kill", after=passings(step))
    run = start_shared()
    killed = point.taken()
    wait_until(lambda: is_gone(killed))
    run.ends_well(SHARE)


@pytest.mark.parametrize("step", ["O2", "R2", pytest.param("C1", marks=pytest.mark.long)])
@pytest.mark.parametrize("reader", [0, 1])
def test_a_reader_is_stopped_and_resumes(start_shared, fault, step, reader):
    point = fault(step, "stop", after=passings(step))
    run = start_shared(faulty_ranks=[reader])
    let_go_on(point.taken())
    run.ends_well(SHARE)


@pytest.mark.parametrize("reader", [0, 1])
def test_a_reader_is_killed(start_shared, fault, reader):
    point = fault("R3", "kill", after=20)
    run = start_shared(endless=True, faulty_ranks=[reader])
    killed = point.taken()
    text = run.fails()
    assert f"rank {reader}" in text and f"process {killed}" in text
    statuses = run.finish_ranks()
    assert statuses.pop(reader) == -signal.SIGKILL and statuses == [1] * 3
    assert all(one_line(rank) == text for number, rank in run.ranks.items() if number != reader)
    # The files of the dead rank do not block the next run.
    start_shared(pairs=run.pairs).ends_well(SHARE)
