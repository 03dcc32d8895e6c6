"""What the scenarios share: Spark, an LMDB, folders, and faults that are counted."""

import contextlib
import os
import pathlib
import signal
import tempfile

import databases
from cluster import Cluster
from fail_point import FailPoint, wait_until_stopped
from pairs import Pairs
from places import BUILD

# Of ranks and executors: it has the package, PyTorch and mpi4py.
PYTHON = BUILD / "wheel-venv" / "bin" / "python"
RANKS = 2
# Of each wait, in runs that must succeed: longer than any pause.
TIMEOUT = 60
# A wait of the soak itself: longer than all waits of the product together.
STUCK = 3 * TIMEOUT
# What a run says whose rank was killed, also while its task was retried.
RANK_IS_DEAD = ("ended before it had taken all its data", "their rank is dead, and no new rank has opened it")
# The folders of pairs.
PAIRS = "pairs-"
_ELEMENTS, _ELEMENT_BYTES = 400, 30_000


class Skipped(Exception):
    """This machine lacks what the scenario needs."""


class Ground:
    """For all runs: cluster, database, fail_point. For one run: folder, on disk, and memory, a folder there."""

    def __init__(self, place, chance, tally, samples, processes):
        self.chance, self.tally, self.samples, self.processes = chance, tally, samples, processes
        self.fail_point = FailPoint(place)
        self.cluster = Cluster(
            place,
            self.fail_point,
            **{
                "spark.task.maxFailures": "1000000",
                "spark.driver.memory": "512m",
                # Longer than processes are stopped, also on a busy machine.
                "spark.network.timeout": "20s",
            },
        )
        self.database = databases.write(
            place / "lmdb", databases.numbered(_ELEMENTS, lambda number: number * 8191 % _ELEMENT_BYTES)
        )
        self._place = place
        self.folder = self.memory = pathlib.Path()
        self._cleaners = []
        self._ranks_were_killed = False

    @contextlib.contextmanager
    def one_run(self):
        """Folders for one run. Afterwards only files of ranks that were killed may be left in memory."""
        self._cleaners = []
        self._ranks_were_killed = False
        with (
            tempfile.TemporaryDirectory(prefix="soak-") as folder,
            tempfile.TemporaryDirectory(prefix="supply-soak-", dir="/dev/shm") as memory,
        ):
            self.folder, self.memory = pathlib.Path(folder), pathlib.Path(memory)
            try:
                yield
            finally:
                self.fail_point.disarm()
            self._check_files()

    def _check_files(self):
        of_dead_ranks = [file for clean in self._cleaners for file in clean()]
        left = [] if self._ranks_were_killed else of_dead_ranks
        left += [
            str(file) for file in self.memory.rglob("*") if file.suffix != ".conf" and not file.name.startswith(PAIRS)
        ]
        # In the folder of temporary files.
        left += map(str, self._place.glob("supply*"))
        self.tally.left += len(left)
        assert not left, f"files are left: {left}"

    def must_be_empty(self, folder):
        """Counts what a run has left in a folder."""
        left = list(folder.iterdir()) if folder.exists() else []
        self.tally.left += len(left)
        assert not left, f"files are left: {left}"

    def pairs(self, count=RANKS, ring="1MiB", block="256KiB"):
        """Pairs of the run, in memory."""
        pairs = Pairs(self.memory / f"{PAIRS}{len(self._cleaners)}", count, ring=ring, block=block)
        self._cleaners.append(pairs.clean)
        return pairs

    def add_cleaner(self, clean):
        """clean: removes files of ranks that were killed, at the end of the run, and returns their names."""
        self._cleaners.append(clean)

    def kill_rank(self, process):
        """As kill(). Files of a rank are left, for the next run."""
        self._ranks_were_killed = True
        return self.kill(process)

    def kill(self, process):
        """Kills a process. False: it has ended before."""
        if not self.processes.are_there(process):
            return False
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.tally.faults += 1
        self.tally.kills += 1
        return True

    @contextlib.contextmanager
    def suspended(self, process):
        """A process is stopped, and continues afterwards, unless it has ended."""
        try:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                if not self.processes.are_there(process):
                    raise ProcessLookupError
                os.kill(process, signal.SIGSTOP)
                wait_until_stopped(process)
                self.tally.faults += 1
                self.tally.suspensions += 1
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
