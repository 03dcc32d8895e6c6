"""The task and the rank die, are stopped for a while, or throw, after each step of proto/PROTOCOL.md."""

import os
import signal
import time

import pytest

from fail_point import (
    DELIVERING_STEPS,
    ENDING_STEPS,
    OPENING_STEPS,
    RECEIVING_STEPS,
    TASK_STEPS,
    is_gone,
    wait_until_stopped,
)
from ranks import one_line
from waiting import wait_until

# Seconds that a process is stopped: the other side has handled everything, and waits.
PAUSE = 0.5


def passings(step):
    """How often a step succeeds before the fault: attaching once, publishing and receiving many times."""
    return 7 if step[0] in "PRC" else 0


def steps(all_of, *short):
    """The others repeat what these show, or what a killed process shows at the same step."""
    return [step if step in short else pytest.param(step, marks=pytest.mark.long) for step in all_of]


def let_go_on(process):
    wait_until_stopped(process)
    time.sleep(PAUSE)
    os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("step", TASK_STEPS)
def test_an_executor_is_killed(start_run, fault, step):
    point = fault(step, "kill", after=passings(step))
    run = start_run()
    killed = point.taken()
    wait_until(lambda: is_gone(killed))
    run.ends_well()


@pytest.mark.parametrize("step", steps(TASK_STEPS + ENDING_STEPS, "A3", "P2", "P4", "E1"))
def test_an_executor_is_stopped_and_resumes(start_run, fault, step):
    point = fault(step, "stop", after=passings(step))
    run = start_run()
    let_go_on(point.taken())
    run.ends_well()


@pytest.mark.parametrize("step", steps(TASK_STEPS, "A5", "P3"))
def test_a_task_throws(start_run, fault, step):
    point = fault(step, "throw", after=passings(step))
    run = start_run()
    point.taken()
    run.ends_well()


@pytest.mark.parametrize("step", ENDING_STEPS)
def test_an_executor_is_killed_when_its_rank_has_everything(start_run, fault, step):
    point = fault(step, "kill")
    run = start_run()
    killed = point.taken()
    wait_until(lambda: is_gone(killed))
    run.ends_well()


@pytest.mark.parametrize("step", OPENING_STEPS)
def test_a_rank_is_killed_while_it_opens_and_is_started_again(start_run, fault, step):
    point = fault(step, "kill")
    run = start_run(faulty_ranks=[1])
    point.taken()
    assert run.finish_rank(1) == -signal.SIGKILL
    run.start_rank(1)
    run.ends_well()


@pytest.mark.parametrize("step", RECEIVING_STEPS)
def test_a_rank_is_killed_while_it_receives(start_run, fault, step):
    point = fault(step, "kill", after=passings(step))
    run = start_run(endless=True, faulty_ranks=[1])
    killed = point.taken()
    text = run.fails()
    assert "rank 1" in text and f"process {killed}" in text and "ended before it had taken all its data" in text
    assert run.finish_ranks() == [1, -signal.SIGKILL]
    assert one_line(run.ranks[0]) == text
    # The files of the dead rank do not block the next run.
    start_run(pairs=run.pairs).ends_well()


def test_a_rank_is_killed_when_it_has_everything(start_run, fault):
    point = fault("E4", "kill")
    run = start_run(faulty_ranks=[1])
    point.taken()
    assert run.finish_ranks() == [0, -signal.SIGKILL]
    # Its task has succeeded.
    run.is_supplied()
    run.pairs.clean()


@pytest.mark.parametrize("step", DELIVERING_STEPS)
@pytest.mark.parametrize("action", ["kill", pytest.param("throw", marks=pytest.mark.long)])
def test_an_executor_fails_while_it_tells_a_rank_of_a_failure(start_run, cluster, fault, tmp_path, step, action):
    point = fault(step, action)
    # The driver would tell the ranks of its own node.
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{cluster.host_of_executors()} slots=2\n")
    run = start_run("--hosts", hosts, endless=True)
    for local_rank in run.ranks:
        run.wait_for_blocks(20, local_rank)
    run.ranks[0].process.terminate()
    text = run.fails()
    point.taken()
    assert "supply-cat was ended by a signal" in text
    assert run.finish_rank(1) == 1
    assert one_line(run.ranks[1]) == text


@pytest.mark.parametrize("step", steps((*OPENING_STEPS, *RECEIVING_STEPS, "E4"), "O3", "R3", "C1"))
def test_a_rank_is_stopped_and_resumes(start_run, fault, step):
    point = fault(step, "stop", after=passings(step))
    run = start_run(faulty_ranks=[1])
    let_go_on(point.taken())
    run.ends_well()
