"""Finds Spark and the Supplier's jar, and starts the jar's programs by spark-submit."""

import os
import pathlib
import re
import tempfile

from .command import ROOT, Failure

# Otherwise every JVM leaves a folder in /tmp.
NO_PERF_DATA = "-XX:-UsePerfData"


class Spark:
    """The Spark of SPARK_HOME (default: the one in build/venv), and the jar that is built for it."""

    def __init__(self):
        in_venv = next(ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), ROOT / "build/venv")
        self.home = pathlib.Path(os.environ.get("SPARK_HOME") or in_venv)
        if not os.access(self.submit, os.X_OK):
            raise Failure(f"no Spark in {self.home}: run 'make build', or set SPARK_HOME")
        core = " ".join(file.name for file in self.home.glob("jars/spark-core_*-*.jar"))
        version = re.match(r"spark-core_[0-9.]+-([0-9]+\.[0-9]+)\.", core)
        of_version = ROOT / f"build/spark-{version[1]}/target/spark-supplier.jar" if version else None
        usual = ROOT / "spark-supplier/target/spark-supplier.jar"
        # On another Spark the usual jar says what to do.
        self.jar = of_version if of_version and of_version.is_file() else usual
        if not self.jar.is_file():
            raise Failure(f"no {self.jar}: run 'make build'")

    @property
    def submit(self):
        return self.home / "bin/spark-submit"

    def environment(self):
        """The environment of every program of Spark."""
        return {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_CONF_DIR": str(configuration()),
            "SPARK_LAUNCHER_OPTS": NO_PERF_DATA,
        }

    def program(self, name, master, conf, arguments):
        """A program of the jar with its driver on this machine: its command and its environment."""
        temporary = tempfile.gettempdir()
        environment = self.environment()
        environment.setdefault("SPARK_LOCAL_DIRS", temporary)
        if master.startswith("local"):
            # A local Spark talks to nobody outside this machine.
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        options = f"spark.driver.defaultJavaOptions={NO_PERF_DATA} -Djava.io.tmpdir={temporary}"
        command = [self.submit, "--class", name, "--master", master]
        for setting in (options, *conf):
            command += ["--conf", setting]
        return [*map(str, command), str(self.jar), *arguments], environment


def configuration():
    """The folder of Spark's settings."""
    return pathlib.Path(os.environ.get("SPARK_CONF_DIR") or ROOT / "configs/spark")
