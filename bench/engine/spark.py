"""Spark's side: one JVM that does one command after another (bench/scala/supply/bench/Bench.scala)."""

import json
import os
import shutil
import subprocess
import tempfile

from engine import paths, process
from engine.failure import BenchError


class Spark:
    def __init__(self, tasks, heap, conf=None, java_options="", cluster=None):
        """cluster: where the tasks run (cluster.py), in place of this JVM's own `tasks` threads."""
        submit = paths.spark_home() / "bin" / "spark-submit"
        for needed in (submit, paths.jar()):
            if not needed.exists():
                raise BenchError(f"no {needed}: run 'make build'")
        self.folder = tempfile.mkdtemp(prefix="supply-bench-spark-")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": f"{heap >> 20}m",
            "spark.local.dir": self.folder,
            # Nobody watches the progress, and a heartbeat before Spark has started up ends in an error in its log.
            "spark.executor.heartbeatInterval": "10s",
            "spark.driver.defaultJavaOptions":
                f"-XX:-UsePerfData -Djava.io.tmpdir={self.folder} -Xms{heap >> 20}m {java_options}".strip(),
            **(conf or {}),
        }
        command = [submit, "--class", "supply.bench.Bench", "--master", "yarn" if cluster else f"local[{tasks}]"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        environment = {
            **os.environ,
            "SPARK_HOME": str(paths.spark_home()),
            "SPARK_CONF_DIR": str(paths.ROOT / "configs" / "spark"),
            "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
            **(cluster.environment() if cluster else {"SPARK_LOCAL_IP": "127.0.0.1"}),
        }
        self.process = subprocess.Popen([*command, paths.jar()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        try:
            self.about = self.answer()
        except BenchError:
            self.close()
            raise

    def ask(self, do, **what):
        self.process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"Spark ended with status {self.process.wait()}: its log stands above")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(f"Spark: {answer['error']}")
        return answer

    def run(self, do, **what):
        self.ask(do, **what)
        return self.answer()

    def close(self):
        process.end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
