"""Ranks of a benchmark that mpirun starts, because they exchange elements."""

import contextlib
import subprocess

from spark_supplier.launch import places
from spark_supplier.launch.mpi import Launcher

from engine import machine, pairs

# From mpirun's SIGTERM until it has ended its ranks.
END_SECONDS = 10


class MpiRanks(pairs.Rank):
    """Rank 0 speaks for all ranks: it answers when all have opened their pairs, and with the results of all."""

    def close(self):
        # A killed mpirun would leave its ranks.
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
        super().close()


@contextlib.contextmanager
def started(configs, command, timeout):
    """Runs mpirun, and waits until all ranks have opened their pairs."""
    ranks = MpiRanks(configs, *command, timeout=timeout)
    try:
        ranks.answer()
        yield ranks
    finally:
        ranks.close()


@contextlib.contextmanager
def on_this_machine(count, ring, block, program, *arguments, timeout):
    """Yields the options of Spark's side, and the ranks."""
    command = [*Launcher().command(count), machine.program(program), *arguments]
    with pairs.config_files(count, ring, block) as configs, started(configs, command, timeout) as ranks:
        yield configs, ranks


@contextlib.contextmanager
def fed(ring, block, program, *arguments, timeout):
    """One rank, and a feeder that has its pair."""
    feeder, rank = places.program("supply-feeder"), machine.program(program)
    command = [*Launcher().command(1), feeder, ":", "-n", "1", rank, *arguments]
    with pairs.config_files(1, ring, block) as configs, started(configs, command, timeout) as ranks:
        yield configs, ranks
