"""Runs at full speed while executors and ranks are killed and stopped at random, for MINUTES minutes.

usage: soak.py MINUTES

The last line names the faults, and the elements and runs that were lost, arrived twice, or got stuck. The exit status
is 1 if there were any, or if memory, descriptors or pages have grown.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

FAULTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FAULTS.parent), str(FAULTS), str(FAULTS.parents[2] / "build" / "python")]

import databases
import headers
from cluster import Cluster
from epoch_check import EpochCheck
from fail_point import RESIDENT_FILE_STEPS, TASK_STEPS, FailPoint
from faulty_run import PROGRAM
from pairs import Pairs
from ranks import Rank
from samples import Samples
from supplier import SupplierFailure
from tally import Tally

RANKS = 2
EPOCHS = 2000
TIMEOUT = 60
# A run is stuck if it makes no progress for both.
STUCK = 2 * TIMEOUT
# Seconds between two faults, and seconds that a process is stopped.
PAUSE = (0.1, 2.0)


class SoakTally(Tally):
    """The number of faults that have killed a process."""

    def __init__(self):
        super().__init__()
        self.kills = 0


class SoakRun:
    """One run, its ranks read and compared as they go."""

    def __init__(self, cluster, database, pairs, fail_point, tally, options):
        self.pairs = pairs
        self._cluster = cluster
        self.ranks = [
            Rank(pairs, number, TIMEOUT, program=PROGRAM, environment=fail_point.environment) for number in range(RANKS)
        ]
        self._check = EpochCheck(database, RANKS, tally)
        self._threads = [threading.Thread(target=self._check.read, args=[rank.process.stdout]) for rank in self.ranks]
        for thread in self._threads:
            thread.start()
        self.supplied = cluster.start(database, pairs, "--epochs", EPOCHS, *options, ranks=RANKS, timeout=TIMEOUT)

    def is_over(self):
        return self.supplied.done()

    def published(self):
        return [headers.read(self.pairs.mapped_file(number), "published") for number in range(RANKS)]

    def task(self, number):
        """The executor that is attached to a pair, or None if there is none or it has died."""
        process = headers.read(self.pairs.mapped_file(number), "task_pid")
        return process if process in self._cluster.executors() else None

    def finish(self, cut_off):
        """Waits for both sides, and counts the results."""
        failure = None
        try:
            self.supplied.result(timeout=STUCK)
        except SupplierFailure as error:
            failure = str(error)
        for rank, thread in zip(self.ranks, self._threads):
            rank.process.wait(timeout=STUCK)
            thread.join()
        self._check.finish(None if cut_off else EPOCHS)
        errors = [rank.process.stderr.read().decode() for rank in self.ranks]
        if not cut_off and (failure or any(errors)):
            raise AssertionError(f"a run that had to go well failed: {failure} {errors}")

    def end(self):
        for rank in self.ranks:
            rank.process.kill()


class Mischief:
    """Faults at random."""

    def __init__(self, run, fail_point, tally, chance):
        self._run, self._fail_point, self._tally, self._chance = run, fail_point, tally, chance
        self._armed = None
        self.rank_killed = False

    def count_taken(self):
        """Counts the processes that have reached the step of the fail point."""
        taken = self._fail_point.count_taken()
        self._tally.faults += taken
        self._tally.kills += taken if self._armed == "kill" else 0

    def happen(self):
        number = self._chance.randrange(RANKS)
        what = self._chance.choices(
            [
                self._kill_task,
                self._kill_at_step,
                self._throw_at_step,
                self._stop_task,
                self._stop_rank,
                self._kill_rank,
            ],
            [8, 8, 4, 2, 2, 4],
        )[0]
        with contextlib.suppress(ProcessLookupError):
            self._tally.faults += what(number)

    def _kill_task(self, number):
        process = self._run.task(number)
        if process is None:
            return 0
        os.kill(process, signal.SIGKILL)
        self._tally.kills += 1
        return 1

    def _kill_at_step(self, _):
        return self._arm("kill")

    def _throw_at_step(self, _):
        return self._arm("throw")

    def _arm(self, action):
        """Counted when a process reaches the step. Attaching is rare."""
        step = self._chance.choice(TASK_STEPS + RESIDENT_FILE_STEPS)
        self.count_taken()
        self._armed = action
        self._fail_point.arm(step, action, self._chance.randrange(200) if step.startswith("P") else 0)
        return 0

    def _stop_task(self, number):
        return self._stop(self._run.task(number))

    def _stop_rank(self, number):
        return self._stop(self._run.ranks[number].process.pid)

    def _stop(self, process):
        if process is None:
            return 0
        os.kill(process, signal.SIGSTOP)
        time.sleep(self._chance.uniform(*PAUSE))
        os.kill(process, signal.SIGCONT)
        return 1

    def _kill_rank(self, number):
        # Before the rank has a task, or after its task has died, the run waits for another rank.
        if self._run.task(number) is None:
            return 0
        self._run.ranks[number].process.kill()
        self._tally.kills += 1
        self.rank_killed = True
        return 1


def go_through(run, mischief, samples, cluster, end):
    """Causes faults and takes samples until the run is over. Raises TimeoutError if the run makes no progress."""
    moved, before, next_fault = time.monotonic(), None, 0
    while not run.is_over():
        time.sleep(0.1)
        mischief.count_taken()
        samples.take("driver", cluster.driver())
        for number, rank in enumerate(run.ranks):
            samples.take(f"rank {number}", rank.process.pid)
        samples.take_folder("pairs", run.pairs.folder)
        published = run.published()
        if published != before:
            moved, before = time.monotonic(), published
        if time.monotonic() - moved > STUCK:
            raise TimeoutError(f"no block for {STUCK} s")
        # A rank's death ends the run, so no fault follows. The last run continues to its own end.
        if time.monotonic() > next_fault and not mischief.rank_killed and time.monotonic() < end and any(published):
            mischief.happen()
            next_fault = time.monotonic() + random.uniform(*PAUSE)


def soak(minutes, folder, tally, samples):
    chance = random.Random()
    fail_point = FailPoint(folder)
    cluster = Cluster(folder, fail_point, **{"spark.task.maxFailures": "1000000", "spark.driver.memory": "512m"})
    database = databases.write(folder / "lmdb", databases.numbered(400, bytes_of=lambda number: number * 8191 % 30_000))
    end = time.monotonic() + 60 * minutes
    try:
        with tempfile.TemporaryDirectory(prefix="supply-soak-", dir="/dev/shm") as memory:
            pairs = Pairs(pathlib.Path(memory, "pairs"), RANKS, ring="1MiB", block="256KiB")
            while time.monotonic() < end:
                options = chance.choice([(), ("--in-place",), ("--resident-folder", folder / "resident")])
                run = SoakRun(cluster, database, pairs, fail_point, tally, options)
                try:
                    mischief = Mischief(run, fail_point, tally, chance)
                    go_through(run, mischief, samples, cluster, end)
                    fail_point.disarm()
                    run.finish(mischief.rank_killed)
                finally:
                    run.end()
                print(tally.line("so far"), file=sys.stderr, flush=True)
    finally:
        cluster.stop()


def main(minutes):
    tally, samples, failure = SoakTally(), Samples(), None
    with tempfile.TemporaryDirectory(prefix="supply-soak-") as folder:
        try:
            soak(minutes, pathlib.Path(folder), tally, samples)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            tally.stuck += 1
            failure = error
        except AssertionError as error:
            failure = error
    for line in samples.lines():
        print(f"soak: {line}")
    growing = samples.growing()
    for problem in [*(f"it grows: {what}" for what in growing), *([failure] if failure else [])]:
        print(f"soak: {problem}", file=sys.stderr)
    print(tally.line("soak"))
    return 1 if failure or growing or tally.lost or tally.duplicated or not tally.elements else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(float(sys.argv[1])))
