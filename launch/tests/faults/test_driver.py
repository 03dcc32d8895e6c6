"""The driver, here a program of its own, dies, gets a signal to end, or is stopped."""

import signal
import time

import pytest

from fail_point import wait_until_stopped
from ranks import one_line
from supplier_program import SupplierProgram


@pytest.fixture
def start_program(make_run, tmp_path):
    """A run with the driver, tasks included, as a process of its own."""
    started = []

    def start(*options, **settings):
        run = make_run(**settings)
        started.append(SupplierProgram(run, *options, environment={"TMPDIR": str(tmp_path)}))
        return run, started[-1]

    yield start
    for program in started:
        program.end()


def in_the_middle(run):
    for local_rank in run.ranks:
        run.wait_for_blocks(20, local_rank)


@pytest.mark.long
def test_the_driver_dies(start_program, counted):
    run, program = start_program(endless=True)
    in_the_middle(run)
    program.process.kill()
    counted()
    assert run.finish_ranks() == [1, 1]
    for rank in run.ranks.values():
        text = one_line(rank)
        assert f"process {program.process.pid}" in text
        assert (
            f"has left and no other attempt came within {run.timeout} s" in text
            and "Spark's log" in text
            and "--timeout" in text
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)], ids=str)
def test_the_driver_is_asked_to_end(start_program, counted, number):
    run, program = start_program(endless=True)
    in_the_middle(run)
    program.process.send_signal(number)
    counted()
    assert run.finish_ranks() == [1, 1]
    assert program.finish() == 128 + number
    text = program.failure()
    assert "was asked to end" in text
    assert [one_line(rank) for rank in run.ranks.values()] == [text, text]
    # It notified the ranks before it ended, and they removed their files.
    assert run.pairs.left_behind() == []


@pytest.mark.long
def test_everything_on_the_spark_side_stands_still_for_half_a_minute(start_program, counted):
    run, program = start_program(epochs=200)
    in_the_middle(run)
    program.process.send_signal(signal.SIGSTOP)
    counted()
    wait_until_stopped(program.process.pid)
    time.sleep(30)
    program.process.send_signal(signal.SIGCONT)
    run.ends_well()
    assert program.finish() == 0, program.error
