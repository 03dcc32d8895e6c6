"""Spark's side: one JVM that does one command after another (bench/scala/supply/bench/Bench.scala)."""

from engine import paths
from engine.failure import BenchError
from engine.spark_process import SparkProcess


class Spark(SparkProcess):
    def __init__(self, tasks, heap, conf=None, java_options="", cluster=None):
        """cluster: where the tasks run (cluster.py), in place of this JVM's own `tasks` threads."""
        submit = paths.spark_home() / "bin" / "spark-submit"
        for needed in (submit, paths.jar()):
            if not needed.exists():
                raise BenchError(f"no {needed}: run 'make build'")
        super().__init__("Spark")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": f"{heap >> 20}m",
            "spark.local.dir": self.folder,
            # Nobody watches the progress, and a heartbeat before Spark has started up ends in an error in its log.
            "spark.executor.heartbeatInterval": "10s",
            "spark.driver.defaultJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={self.folder} -Xms{heap >> 20}m {java_options}".strip(),
            **(conf or {}),
        }
        command = [submit, "--class", "supply.bench.Bench", "--master", "yarn" if cluster else f"local[{tasks}]"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        self.start([*command, paths.jar()], cluster.environment() if cluster else {"SPARK_LOCAL_IP": "127.0.0.1"})

    def ask(self, do, **what):
        self.send({"do": do, **what})

    def run(self, do, **what):
        self.ask(do, **what)
        return self.answer()
