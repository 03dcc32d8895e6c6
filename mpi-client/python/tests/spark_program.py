"""A PySpark program that takes a line of JSON for each request, and answers each with one line."""

import json
import os
import pathlib
import subprocess

from layout import JAR, SPARK_PYTHON

LIMIT_SECONDS = 120


class SparkProgram:
    def __init__(self, log, name, *arguments, **environment):
        """Starts the program `name` of this folder; its messages go to `log`."""
        self.process = subprocess.Popen(
            [str(SPARK_PYTHON), str(pathlib.Path(__file__).with_name(name)), *map(str, arguments)],
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {JAR} pyspark-shell", **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
        )  # fmt: skip

    def send(self, request):
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")

    def answer(self):
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise AssertionError("the PySpark program has ended")

    def end(self):
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(LIMIT_SECONDS)
        finally:
            self.process.kill()
