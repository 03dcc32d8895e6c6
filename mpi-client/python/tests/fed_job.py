"""An mpirun of feeders and of ranks, which run fed_rank.py."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from ending import end_mpirun, memory_in
from exchanging import LeavingTask, feeding
from task import wait_until

NEEDS_MPI = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None, reason="no mpi4py, or no mpirun"
)
TESTS = pathlib.Path(__file__).parent
LIMIT_SECONDS = 120
EPOCHS = 2
PYTHON_FEEDER = [sys.executable, "-m", "spark_supplier.feeder"]


class Pair:
    """The files of a pair, as feeding() takes them."""

    def __init__(self, name):
        self.paths = [name.with_name(f"{name.name}.{end}") for end in ("mapped", "request", "notification")]

    def task(self):
        """Attaches to the pair when it is open."""

        def attached():
            try:
                task = LeavingTask(*self.paths)
            except (OSError, ValueError):
                # The files are not there yet, or the file is still empty.
                return None
            if task.header("version") != 0:
                return task
            task.leave()
            return None

        return wait_until("the pair", attached)


class Job:
    """An mpirun of feeders and ranks, with the config files of their pairs."""

    def __init__(self, folder, pairs, timeout=60):
        self.folder = folder
        self.pairs = [Pair(folder / f"pair-{number}") for number in range(pairs)]
        self.environment = {"SUPPLY_TIMEOUT": str(timeout), "OMPI_MCA_mpi_yield_when_idle": "1", **memory_in(folder)}
        for variable, name, line in (
            ("SUPPLY_MAPPED_FILES", "mapped-files.conf", lambda paths: f"{paths[0]} ring=64KiB block=16KiB"),
            ("SUPPLY_NAMED_PIPES", "named-pipes.conf", lambda paths: f"{paths[1]} {paths[2]}"),
        ):
            file = folder / name
            file.write_text("".join(line(pair.paths) + "\n" for pair in self.pairs))
            self.environment[variable] = str(file)
        self._mpirun: Any = None
        self._output: Any = None

    def start(self, feeders, ranks, action, *values, feeder=PYTHON_FEEDER):
        self.start_program(
            feeders, ranks, [sys.executable, str(TESTS / "fed_rank.py"), str(self.folder), action, *values], feeder
        )

    def start_program(self, feeders, ranks, program, feeder):
        """program, feeder: commands."""
        root = [] if os.geteuid() else ["--allow-run-as-root"]
        command = ["mpirun", "--oversubscribe", *root]
        if feeders:
            command += ["-n", str(feeders), *feeder, ":"]
        command += ["-n", str(ranks), *program]
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._mpirun = subprocess.Popen(
            command, env={**os.environ, **self.environment}, stdout=self._output, stderr=subprocess.STDOUT
        )

    def feed(self, sizes):
        """Tasks of all pairs. To be joined."""
        for pair in self.pairs:
            pair.task().leave()
        return [feeding(pair, number, sizes[number], EPOCHS) for number, pair in enumerate(self.pairs)]

    def wait(self):
        """What mpirun and its programs have printed, and its exit status."""
        status = self._mpirun.wait(LIMIT_SECONDS)
        self._output.seek(0)
        return self._output.read(), status

    def succeed(self):
        printed, status = self.wait()
        assert status == 0, printed
        assert not [path for pair in self.pairs for path in pair.paths if path.exists()]
        return printed

    def outcomes(self):
        """What each rank has written."""
        return [json.loads(file.read_text()) for file in sorted(self.folder.glob("[0-9].json"))]

    def end(self):
        if self._mpirun is not None:
            end_mpirun(self._mpirun)
            self._output.close()
