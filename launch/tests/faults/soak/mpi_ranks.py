"""Ranks of an mpirun get a DataFrame: they exchange elements, or feeders feed them. Ranks and feeders are killed."""

import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import threading

from fed_job import Job
from places import PROGRAMS
from soak import rank_ids
from soak.ground import PYTHON, RANK_IS_DEAD, STUCK, TIMEOUT, Skipped
from soak.torment import PairFaults, go_through

RANK = pathlib.Path(__file__).with_name("rank.py")
PYTHON_FEEDER, C_FEEDER = [str(PYTHON), "-m", "spark_supplier.feeder"], [str(PROGRAMS / "supply-feeder")]
ROWS, EPOCHS = 2000, 60


def exchange_all(ground):
    _run(ground, ranks=2, exchange={"policy": "all", "window": 8192})


def exchange_hash(ground):
    _run(ground, ranks=3, exchange={"policy": "hash", "column": "id", "window": 8192})


def feeders(ground):
    feeder = ground.chance.choice([PYTHON_FEEDER, C_FEEDER])
    _run(ground, ranks=2, feeders=1, feeder=feeder)


def _run(ground, ranks, feeders=0, **options):
    with _MpiRun(ground, ranks, feeders, **options) as run:
        faults = [*run.faults.weighted, (run.kill_a_rank, 2)]
        ended = go_through(ground, run.write.is_over, run.mapped_files, faults)
        run.finish(ended is not None)


class _Write:
    """A DataFrame that Spark supplies in the background."""

    def __init__(self, df, **options):
        writer = df.write.format("supply").mode("append").options(**options)
        self._end = concurrent.futures.Future()
        threading.Thread(target=self._save, args=[writer], daemon=True).start()

    def _save(self, writer):
        try:
            writer.save()
            self._end.set_result(None)
        except Exception as error:
            java = getattr(error, "java_exception", None)
            self._end.set_result(str(error) if java is None else java.getMessage())

    def is_over(self):
        return self._end.done()

    def failure(self, timeout=None):
        """Waits for the end. The message of Spark's failure, or None."""
        return self._end.result(timeout)


class _MpiRun:
    def __init__(self, ground, ranks, feeders=0, feeder=PYTHON_FEEDER, **options):
        if not (PROGRAMS / "supply-feeder").exists():
            raise Skipped("libsupply was built without MPI")
        self._ground = ground
        pairs = max(ranks, feeders)
        self.expected = collections.Counter(itertools.product(range(EPOCHS), range(ROWS)))
        self.job = Job(ground.memory, pairs, TIMEOUT)
        ground.add_cleaner(self._clean)
        self.mapped_files = [pair.paths[0] for pair in self.job.pairs]
        self.faults = PairFaults(ground, self.mapped_files)
        # An exception ends all processes. Otherwise the end of MPI would wait for a feeder that is stopped.
        program = [str(PYTHON), "-m", "mpi4py", str(RANK), str(ground.folder), json.dumps({"mpi": True, **options})]
        self.job.start_program(feeders, ranks, program, feeder)
        df = ground.cluster.session.range(0, ROWS, 1, 4 * pairs)
        files = {
            "mapped-files": self.job.environment["SUPPLY_MAPPED_FILES"],
            "named-pipes": self.job.environment["SUPPLY_NAMED_PIPES"],
        }
        self.write = _Write(df, ranks=pairs, epochs=EPOCHS, timeout=TIMEOUT, **{"block-elements": 50}, **files)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.end()

    def kill_a_rank(self, number):
        """Also one that has feeders, and so no pair of its own."""
        processes = rank_ids.processes(self._ground.folder)
        return bool(processes and self.faults.task(number)) and self._ground.kill_rank(
            self._ground.chance.choice(list(processes.values()))
        )

    def finish(self, was_killed):
        failure = self.write.failure(STUCK)
        printed, status = self.job.wait()
        if was_killed and failure:
            assert any(text in failure for text in RANK_IS_DEAD), failure
            assert status != 0, printed
        else:
            assert failure is None and (status == 0 or was_killed), (failure, printed)
        rank_ids.check(self._ground.tally, self._ground.folder, self.expected, was_killed)

    def _clean(self):
        environment = {**os.environ, **self.job.environment}
        clean = [PROGRAMS / "supply-clean"]
        return subprocess.run(clean, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
