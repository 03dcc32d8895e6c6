"""Finds Spark and the Supplier's jar, and starts the jar's programs by spark-submit."""

import os
import pathlib
import re
import tempfile

from . import places
from .command import Failure

# Otherwise every JVM leaves a folder in /tmp.
NO_PERF_DATA = "-XX:-UsePerfData"


class Spark:
    """The Spark of SPARK_HOME (default: places.spark_home()), and the jar that is built for it."""

    def __init__(self):
        home = os.environ.get("SPARK_HOME") or places.spark_home()
        if not home:
            raise Failure(f"there is no Spark: {places.MISSING_SPARK}")
        self.home = pathlib.Path(home)
        if not os.access(self.submit, os.X_OK):
            raise Failure(f"no Spark in {self.home}: {places.MISSING_SPARK}")
        core = " ".join(file.name for file in self.home.glob("jars/spark-core_*-*.jar"))
        version = re.match(r"spark-core_[0-9.]+-([0-9]+\.[0-9]+)\.", core)
        # On another Spark the usual jar says what to do.
        self.jar = places.jar(version[1] if version else "")
        if not self.jar.is_file():
            raise Failure(f"no {self.jar}: {places.MISSING}")

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
    return pathlib.Path(os.environ.get("SPARK_CONF_DIR") or places.spark_settings())
