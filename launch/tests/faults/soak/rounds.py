"""The scenarios in turn: each one once in a fixed order, then at random."""

import collections
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback

from samples import Samples
from soak import calls, elsewhere, matrices, mpi_ranks, results, streams, supplier
from soak.ground import Ground, Skipped
from soak.own_processes import OwnProcesses
from tally import Tally

# By name: a function of the ground that makes one run, and how often it gets a turn in comparison with others.
SCENARIOS = {
    "supplier-copy": (supplier.copy, 6),
    "supplier-shared": (supplier.shared, 6),
    "supplier-in-place": (supplier.in_place, 6),
    "supplier-resident-folder": (supplier.resident_folder, 6),
    "exchange-all": (mpi_ranks.exchange_all, 3),
    "exchange-hash": (mpi_ranks.exchange_hash, 3),
    "stream-executors-killed": (streams.executors_killed, 4),
    "stream-driver-killed": (streams.driver_killed, 1),
    "matrices-server-killed": (matrices.server_killed, 3),
    "matrices-server-suspended": (matrices.server_suspended, 1),
    "results-killed-while-read": (results.executors_killed_while_spark_reads, 2),
    "results-killed-while-written": (results.killed_while_ranks_write, 2),
    "restarts": (calls.from_checkpoints, 2),
    "restarts-connect": (calls.over_connect, 1),
    "restarts-dynamic": (calls.in_dynamic_allocation, 1),
    "kept-ranks": (calls.of_kept_ranks, 1),
    "elsewhere": (elsewhere.cut_and_killed, 3),
}


class SoakTally(Tally):
    """failed: runs with a failed check. left: files and processes that runs have left. growing: resources that grow."""

    def __init__(self):
        self.minutes = self.runs = self.failed = self.kills = self.suspensions = 0
        super().__init__()
        self.left = self.growing = 0

    def is_good(self):
        bad = self.failed + self.lost + self.duplicated + self.stuck + self.left + self.growing
        return bool(self.elements) and not bad

    def since(self, before):
        """What was counted since `before`, a copy of vars()."""
        return {name: value - before[name] for name, value in vars(self).items()}


class Rounds:
    """One soak."""

    def __init__(self, ground, names):
        self._began = time.monotonic()
        self._ground, self._tally = ground, ground.tally
        self._first_round, self._names = list(names), list(names)
        self.table = collections.defaultdict(collections.Counter)

    def go_on(self):
        """Makes the next run. False: it got stuck, so nothing is as it should be."""
        name = self._next()
        before, began = dict(vars(self._tally)), time.monotonic()
        stuck = False
        try:
            with self._ground.one_run():
                SCENARIOS[name][0](self._ground)
        except Skipped as skipped:
            print(f"soak: skipped: {name}: {skipped}", file=sys.stderr, flush=True)
            self._names.remove(name)
        except (TimeoutError, subprocess.TimeoutExpired):
            self._tally.stuck += 1
            stuck = True
            self._report(name)
        except Exception:
            self._tally.failed += 1
            self._report(name)
        else:
            self._tally.runs += 1
        self._check_processes(name)
        self.table[name].update({**self._tally.since(before), "seconds": round(time.monotonic() - began)})
        self._tally.minutes = round((time.monotonic() - self._began) / 60)
        print(f"{self._tally.line('so far')} (after {name})", file=sys.stderr, flush=True)
        return not stuck

    def _next(self):
        if self._first_round:
            return self._first_round.pop(0)
        weights = [SCENARIOS[name][1] for name in self._names]
        return self._ground.chance.choices(self._names, weights)[0]

    def has_scenarios(self):
        """Whether the machine has what at least one needs."""
        return bool(self._names)

    def is_in_first_round(self):
        return bool(self._first_round)

    def _check_processes(self, name):
        left = self._ground.processes.check_left(self._ground.cluster)
        self._tally.left += len(left)
        for command in left:
            print(f"soak: {name} has left the process {command}", file=sys.stderr, flush=True)
        # In the first round they load what they need.
        if not self.is_in_first_round():
            self._ground.samples.take("driver", self._ground.cluster.driver())
            self._ground.samples.take("soak", os.getpid())

    @staticmethod
    def _report(name):
        print(f"soak: {name} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)


def _print_table(table):
    columns = ("runs", "kills", "suspensions", "faults", "elements", "seconds")
    print(f"{'scenario':26}" + "".join(f"{column:>13}" for column in columns))
    for name, counts in table.items():
        print(f"{name:26}" + "".join(f"{counts[column]:13}" for column in columns))


def soak(minutes, names):
    tally, samples = SoakTally(), Samples()
    processes = OwnProcesses()
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"soak: seed {seed}", file=sys.stderr, flush=True)
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="supply-soak-") as place:
        # Also for what Spark and MPI leave when they are killed.
        os.environ["TMPDIR"] = tempfile.tempdir = place
        ground = Ground(pathlib.Path(place), random.Random(seed), tally, samples, processes)
        rounds = Rounds(ground, names)
        try:
            while rounds.is_in_first_round() or (rounds.has_scenarios() and time.monotonic() < end):
                if not rounds.go_on():
                    break
        finally:
            ground.cluster.stop()
        tally.left += len(processes.check_end())
    growing = samples.growing()
    tally.growing = len(growing)
    for line in samples.lines():
        print(f"soak: {line}")
    for what in growing:
        print(f"soak: it grows: {what}", file=sys.stderr)
    _print_table(rounds.table)
    print(tally.line("soak"))
    return 0 if tally.is_good() else 1
