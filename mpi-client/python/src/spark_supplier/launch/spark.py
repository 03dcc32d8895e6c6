"""Finds Spark and the Supplier's jar, and starts the jar's programs by spark-submit."""

import os
import pathlib
import re
import shutil

from . import places
from .command import Failure, temporary_folder

# Otherwise every JVM leaves a folder in /tmp.
NO_PERF_DATA = "-XX:-UsePerfData"
_DEFAULTS = "spark-defaults.conf"


def java_options(temporary):
    """The options of a JVM that keeps its temporary files in that folder, as Spark's settings take them."""
    return f'{NO_PERF_DATA} -Djava.io.tmpdir="{temporary}"'


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
        environment = {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_CONF_DIR": str(self.configuration),
            "SPARK_LAUNCHER_OPTS": NO_PERF_DATA,
        }
        if not any(self.configuration.glob("log4j2*.*")):
            log = f'-Dlog4j2.configurationFile="{places.spark_settings() / "log4j2.properties"}"'
            environment["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {log}".lstrip()
        return environment

    @property
    def configuration(self):
        """The folder of Spark's settings: that of the user, of the site, or the product's own."""
        named, of_site = os.environ.get("SPARK_CONF_DIR"), self.home / "conf"
        if named:
            return pathlib.Path(named)
        return of_site if (of_site / _DEFAULTS).is_file() else places.spark_settings()

    @property
    def added_settings(self):
        """The product's settings, as KEY=VALUE, that the folder does not have."""
        own, others = _settings(places.spark_settings()), _settings(self.configuration)
        return [f"{name}={value}" for name, value in own.items() if name not in others]

    def setting(self, name):
        """Of the folder. None: it does not have it."""
        return _settings(self.configuration).get(name)

    def program(self, name, master, conf, arguments):
        """A program of the jar with its driver on this machine: its command and its environment."""
        temporary = temporary_folder()
        environment = self.environment()
        environment.setdefault("SPARK_LOCAL_DIRS", temporary)
        settings = [f"spark.driver.defaultJavaOptions={java_options(temporary)}"]
        if master.startswith("local"):
            # A local Spark talks to nobody outside this machine.
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        if re.fullmatch(r"local(\[[^]]*\])?", master):
            # Every user of this machine reaches its ports. Such a Spark makes the secret itself.
            settings.append("spark.authenticate=true")
        command = [self.submit, "--class", name, "--master", master]
        for setting in (*self.added_settings, *settings, *conf):
            command += ["--conf", setting]
        return [*map(str, command), str(self.jar), *arguments], environment


def java():
    """The program java that spark-submit takes, too."""
    home = os.environ.get("JAVA_HOME")
    wanted = f"{home}/bin/java" if home else "java"
    found = shutil.which(wanted)
    if not found:
        raise Failure(f"there is no {wanted if home else 'java on PATH'}: install Java 17, or set JAVA_HOME", 127)
    return found


def _settings(folder):
    """The settings of a folder's spark-defaults.conf."""
    file = folder / _DEFAULTS
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    found = (re.fullmatch(r"\s*([^#\s=:]+)[\s=:]+(.*?)\s*", line) for line in lines)
    return {setting[1]: setting[2] for setting in found if setting}
