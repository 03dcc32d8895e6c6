"""A driver of its own, with its tasks, is killed, or suspended for longer than the limit."""

import contextlib
import pathlib

from faulty_run import FaultyRun
from ranks import one_line
from soak.ground import RANKS, SHORT_TIMEOUT, STUCK
from supplier_program import SupplierProgram
from waiting import wait_until


def _runs_tasks(jvm):
    """Whether Spark has begun tasks, by the names of its threads."""
    names = pathlib.Path(f"/proc/{jvm}/task").glob("*/comm")
    with contextlib.suppress(FileNotFoundError):
        return any(name.read_text().startswith("Executor task") for name in names)
    return False


class _EndlessRun:
    """A run in the middle, and its driver."""

    def __init__(self, ground):
        self._run = FaultyRun(ground.pairs(), ground.database, 1_000_000, SHORT_TIMEOUT)
        self._program = None

    def __enter__(self):
        self._program = SupplierProgram(self._run)
        # Not earlier: Spark takes longer to start than ranks wait.
        wait_until(lambda: _runs_tasks(self._program.process.pid), STUCK)
        for number in range(RANKS):
            self._run.start_rank(number, arguments=["--count"])
        for number in range(RANKS):
            self._run.wait_for_blocks(20, number)
        return self._run, self._program

    def __exit__(self, *_):
        if self._program is not None:
            self._program.end()
        self._run.end()


def killed(ground):
    with _EndlessRun(ground) as (run, program):
        ground.kill(program.process.pid)
        assert run.finish_ranks() == [1] * RANKS
        for rank in run.ranks.values():
            text = one_line(rank)
            assert f"process {program.process.pid}" in text and "has left and no other attempt came" in text, text


def suspended(ground):
    with _EndlessRun(ground) as (run, program):
        with ground.suspended(program.process.pid):
            assert run.finish_ranks() == [1] * RANKS
        for rank in run.ranks.values():
            assert "is attached and has supplied nothing for" in (text := one_line(rank)), text
        assert program.finish() == 3, program.error
        assert "is attached and has supplied nothing for" in program.failure(), program.error
