"""Processes with a Spark of their own that run one command after another."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from engine import machine
from engine.machine import BenchError

# From the end of its input to the end of the process.
END_SECONDS = 30
# Of one command: longer than MLlib's slowest routine on a busy machine.
ANSWER_SECONDS = 1800


class CommandError(BenchError):
    """A command has failed, and the process takes the next one."""


class SparkProcess:
    """`folder` holds Spark's files and goes at the end. `about` is what the process says of itself when ready."""

    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="supply-bench-spark-")
        self.process = None
        self.failed = set()

    def start(self, command, environment):
        environment = {
            **machine.spark().environment(),
            "SPARK_CONF_DIR": str(machine.ROOT / "configs" / "spark"),
            **environment,
        }
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            self.about = self.answer()
        except BaseException:  # SIGTERM may end the benchmark meanwhile.
            self.close()
            raise

    def round(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        line = machine.read_line(self.process, self.process.stdout, ANSWER_SECONDS, self.name)
        if not line:
            raise BenchError(f"{self.name} ended with status {self.process.wait()}: its message stands above")
        answer = json.loads(line)
        if "error" in answer:
            raise CommandError(f"{self.name}: {answer['error']}")
        return answer

    def attempt(self, name, **command):
        """round() of an alternative. None: it fails. It is not asked again: that may take as long as a timeout."""
        if name in self.failed:
            return None
        try:
            return self.round(**command)
        except CommandError as error:
            print(f"bench: {name} fails: {error}", file=sys.stderr)
            self.failed.add(name)
            return None

    def close(self):
        """Closes the process's input, and kills the process if it does not end."""
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


class Spark(SparkProcess):
    def __init__(self, tasks, heap, conf=None):
        """Runs tasks in `tasks` threads of this JVM."""
        spark = machine.spark()
        bench_jar = spark.jar.with_name("spark-supplier-bench.jar")
        if not bench_jar.exists():
            raise BenchError(f"no {bench_jar}: run 'make build bench-programs'")
        super().__init__("Spark")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": f"{heap >> 20}m",
            "spark.local.dir": self.folder,
            # A heartbeat before Spark has started logs an error, and nobody watches the progress.
            "spark.executor.heartbeatInterval": "10s",
            "spark.driver.defaultJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={self.folder} -Xms{heap >> 20}m",
            **(conf or {}),
        }
        command = [spark.submit, "--class", "supply.bench.Bench", "--jars", spark.jar, "--master", f"local[{tasks}]"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        self.start([*command, bench_jar], {"SPARK_LOCAL_IP": "127.0.0.1"})

    def run(self, do, **what):
        return self.round(do=do, **what)


class PythonSpark(SparkProcess):
    def __init__(self, program, *arguments, environment=None, python=machine.SUPPLY_PYTHON, group=None):
        """
        Runs a program of bench/py with a folder for Spark's files, the product's jar and `arguments`.

        group: of limit_memory(), for everything that the program starts.
        """
        super().__init__(program)
        programs = machine.ROOT / "bench" / "py"
        zips = machine.spark().home.glob("python/lib/*.zip")
        paths = {
            "PYTHONPATH": os.pathsep.join(map(str, (*zips, programs, programs.parent))),
            "PYSPARK_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [python, programs / program, self.folder, machine.spark().jar, *map(str, arguments)]
        if group:
            command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', group, *command]
        self.start(command, {**paths, **(environment or {})})
