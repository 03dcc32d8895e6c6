"""launch/supplier as a process of its own, for faults of the driver."""

import os
import subprocess

from places import LAUNCH
from ranks import END_OF_PATIENCE


class SupplierProgram:
    def __init__(self, run, *options, environment=()):
        arguments = ["--lmdb", run.database, *run.pairs.options(), "--ranks", run.pairs.count, "--epochs", run.epochs]
        self.process = subprocess.Popen(
            [LAUNCH / "supplier", *map(str, (*arguments, "--timeout", run.timeout, *options))],
            env={**os.environ, **dict(environment)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.error = ""

    def finish(self):
        """Returns the exit status."""
        _, self.error = self.process.communicate(timeout=END_OF_PATIENCE)
        return self.process.returncode

    def failure(self):
        """Its last message."""
        lines = [line for line in self.error.splitlines() if line.startswith("supplier: error: ")]
        return lines[-1].removeprefix("supplier: error: ")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
