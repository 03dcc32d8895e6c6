"""Ranks of an mpirun get a DataFrame, and exchange elements. Ranks are killed."""

import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import threading

from ending import end_mpirun, memory_in
from places import PROGRAMS
from soak import rank_ids
from soak.ground import PYTHON, RANK_IS_DEAD, STUCK, TIMEOUT, Skipped
from soak.torment import PairFaults, go_through

RANK = pathlib.Path(__file__).with_name("rank.py")
ROWS, EPOCHS = 2000, 60
LIMIT_SECONDS = 120


def exchange_all(ground):
    _run(ground, ranks=2, exchange={"policy": "all", "window": 8192})


def exchange_hash(ground):
    _run(ground, ranks=3, exchange={"policy": "hash", "column": "id", "window": 8192})


def _run(ground, ranks, **options):
    with _MpiRun(ground, ranks, **options) as run:
        faults = [*run.faults.weighted, (run.kill_a_rank, 2)]
        ended = go_through(ground, run.write.is_over, run.job.mapped_files, faults)
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


class _Job:
    """An mpirun of ranks, with the config files of their pairs."""

    def __init__(self, folder, ranks, program):
        pairs = [
            [folder / f"pair-{rank}.{end}" for end in ("mapped", "request", "notification")] for rank in range(ranks)
        ]
        self.mapped_files = [mapped for mapped, _, _ in pairs]
        self.environment = {"SUPPLY_TIMEOUT": str(TIMEOUT), "OMPI_MCA_mpi_yield_when_idle": "1", **memory_in(folder)}
        for variable, name, lines in (
            (
                "SUPPLY_MAPPED_FILES",
                "mapped-files.conf",
                [f"{mapped} ring=64KiB block=16KiB" for mapped, _, _ in pairs],
            ),
            ("SUPPLY_NAMED_PIPES", "named-pipes.conf", [f"{request} {notice}" for _, request, notice in pairs]),
        ):
            (folder / name).write_text("".join(f"{line}\n" for line in lines))
            self.environment[variable] = str(folder / name)
        root = [] if os.geteuid() else ["--allow-run-as-root"]
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._mpirun = subprocess.Popen(
            ["mpirun", "--oversubscribe", *root, "-n", str(ranks), *program],
            env={**os.environ, **self.environment},
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def wait(self):
        """What mpirun and its programs have printed, and its exit status."""
        status = self._mpirun.wait(LIMIT_SECONDS)
        self._output.seek(0)
        return self._output.read(), status

    def end(self):
        end_mpirun(self._mpirun)
        self._output.close()


class _MpiRun:
    def __init__(self, ground, ranks, **options):
        if not (PROGRAMS / "supply-server").exists():
            raise Skipped("libsupply was built without MPI")
        self._ground = ground
        self.expected = collections.Counter(itertools.product(range(EPOCHS), range(ROWS)))
        # An exception ends all processes.
        program = [str(PYTHON), "-m", "mpi4py", str(RANK), str(ground.folder), json.dumps({"mpi": True, **options})]
        self.job = _Job(ground.memory, ranks, program)
        ground.add_cleaner(self._clean)
        self.faults = PairFaults(ground, self.job.mapped_files)
        df = ground.cluster.session.range(0, ROWS, 1, 4 * ranks)
        files = {
            "mapped-files": self.job.environment["SUPPLY_MAPPED_FILES"],
            "named-pipes": self.job.environment["SUPPLY_NAMED_PIPES"],
        }
        self.write = _Write(df, ranks=ranks, epochs=EPOCHS, timeout=TIMEOUT, **{"block-elements": 50}, **files)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.end()

    def kill_a_rank(self, number):
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
