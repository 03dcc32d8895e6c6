"""A PySpark program of bench/py: a process of its own with a Spark of its own that does one round a line of its stdin."""

import json
import os
import shutil
import subprocess
import tempfile

from engine import paths, process
from engine.failure import BenchError


class PythonSpark:
    def __init__(self, program, *arguments, python=paths.VENV_PYTHON, environment=None):
        """The program is given the arguments behind a folder for Spark's files; its first line is its answer `about` itself."""
        self.program = program
        self.local = tempfile.mkdtemp(prefix="supply-bench-spark-")
        environment = {
            **os.environ,
            "SPARK_HOME": str(paths.spark_home()),
            "SPARK_CONF_DIR": str(paths.ROOT / "configs" / "spark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
            "PYSPARK_PYTHON": str(paths.VENV_PYTHON),
            **(environment or {}),
        }
        command = [python, paths.ROOT / "bench" / "py" / program, self.local, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            self.about = self._answer()
        except BenchError:
            self.close()
            raise

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"{self.program} ended with status {self.process.wait()}: its message stands above")
        return json.loads(line)

    def round(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        process.end(self.process)
        shutil.rmtree(self.local, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
