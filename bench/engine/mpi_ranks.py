"""Ranks of a benchmark that mpirun starts on this machine, because they exchange elements."""

import contextlib
import subprocess

from engine import machine
from engine.pairs import Rank
from supply_launch.mpi import Launcher

# From mpirun's SIGTERM until it has ended its ranks.
END_SECONDS = 10


class MpiRanks(Rank):
    """Rank 0 speaks for all ranks: it answers when all have opened their pairs, and with the results of all."""

    def close(self):
        # A killed mpirun would leave its ranks.
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
        super().close()


@contextlib.contextmanager
def opened(count, configs, program, *arguments, timeout):
    """Starts `count` ranks, and waits until all have opened their pairs."""
    command = [*Launcher().command(count), machine.program(program), *arguments]
    ranks = MpiRanks(configs, *command, timeout=timeout)
    try:
        ranks.answer()
        yield ranks
    finally:
        ranks.close()
