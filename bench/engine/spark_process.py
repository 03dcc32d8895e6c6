"""A process with a Spark of its own that does one command after another, as they come on its stdin."""

import json
import os
import shutil
import subprocess
import tempfile

from engine import paths
from engine.failure import BenchError

# From the end of the commands to the end of the process.
END_SECONDS = 30


class SparkProcess:
    """`folder`: for Spark's files, removed with it. `about`: what it says of itself when it is ready."""

    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="supply-bench-spark-")
        self.process = None

    def start(self, command, environment):
        environment = {
            **os.environ,
            "SPARK_HOME": str(paths.spark_home()),
            "SPARK_CONF_DIR": str(paths.ROOT / "configs" / "spark"),
            "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
            **environment,
        }
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            self.about = self.answer()
        except BaseException:  # A benchmark may be asked to end meanwhile.
            self.close()
            raise

    def send(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"{self.name} ended with status {self.process.wait()}: its message stands above")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(f"{self.name}: {answer['error']}")
        return answer

    def close(self):
        """Tells it that no command follows, and sees to it that it ends."""
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
