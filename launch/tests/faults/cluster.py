"""A Spark with two executors on this node. They are processes of their own, so that tests can kill them."""

import os
import pathlib
import subprocess

import pyspark

from places import JAR
from supplier import Supplier

EXECUTORS = 2
# Slots of each: enough for fifty ranks on both.
CORES = 26
MEMORY_MIB = 512


def spark_home(folder):
    """Makes a SPARK_HOME for the test: a standalone worker writes into it."""
    folder.mkdir()
    for entry in pathlib.Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder


class Cluster(Supplier):
    def __init__(self, temporary, fail_point, **settings):
        os.environ["SPARK_HOME"] = str(spark_home(temporary / "spark"))
        super().__init__(
            temporary,
            master=f"local-cluster[{EXECUTORS},{CORES},{MEMORY_MIB}]",
            **{
                # Another host than that of the executors, if a host file names theirs.
                "spark.driver.host": "127.0.0.3",
                "spark.driver.bindAddress": "0.0.0.0",
                "spark.executor.extraClassPath": str(JAR),
                "spark.executor.memory": f"{MEMORY_MIB}m",
                # They live for seconds: an optimizing compiler costs more time than it saves.
                "spark.executor.defaultJavaOptions": "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
                f"-Djava.io.tmpdir={temporary}",
                # After this silence an executor is lost, and its tasks start elsewhere.
                "spark.network.timeout": "10s",
                "spark.network.timeoutInterval": "1s",
                "spark.executor.heartbeatInterval": "2s",
                **{f"spark.executorEnv.{name}": value for name, value in fail_point.environment.items()},
                **settings,
            },
        )

    def failed_attempts(self):
        """The number of failed attempts of the running job's tasks, as Spark counts them."""
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numFailedTasks for stage in stages if stage is not None)

    def host_of_executors(self):
        """As Spark names it."""
        return self.session.sparkContext._jvm.org.apache.spark.util.Utils.localHostName()

    def cancel_all_jobs(self):
        """Lets Spark cancel all runs."""
        self.session.sparkContext.cancelAllJobs()

    def driver(self):
        """The process of the driver."""
        return self.session.sparkContext._gateway.proc.pid

    def executors(self):
        """The processes of the executors. The script that starts the driver may leave it a dead child, too."""
        pgrep = ["pgrep", "--exact", "--parent", str(self.driver()), "java"]
        found = subprocess.run(pgrep, capture_output=True, text=True, check=False)
        return set(map(int, found.stdout.split()))
