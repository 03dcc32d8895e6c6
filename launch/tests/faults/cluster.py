"""A Spark whose executors are processes of their own, two of them on this node, so that they can be killed."""

import os
import pathlib
import subprocess

import pyspark

from places import JAR
from supplier import Supplier

# Slots of each executor: enough for fifty ranks on two of them.
CORES = 26
MEMORY_MIB = 512


def spark_home(folder):
    """A SPARK_HOME of the test's own: a standalone worker writes into it."""
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
            master=f"local-cluster[2,{CORES},{MEMORY_MIB}]",
            **{
                "spark.executor.extraClassPath": str(JAR),
                "spark.executor.memory": f"{MEMORY_MIB}m",
                # They live for seconds: what an optimizing compiler costs does not come back.
                "spark.executor.defaultJavaOptions": f"-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={temporary}",
                # An executor that says nothing for so long is lost, and its tasks start elsewhere.
                "spark.network.timeout": "10s",
                "spark.network.timeoutInterval": "1s",
                "spark.executor.heartbeatInterval": "2s",
                **{f"spark.executorEnv.{name}": value for name, value in fail_point.environment.items()},
                **settings,
            },
        )

    def failed_attempts(self):
        """How many attempts of the tasks of the run that is going on have failed, as Spark sees it."""
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numFailedTasks for stage in stages if stage is not None)

    def cancel_all_jobs(self):
        """Spark gives up all runs."""
        self.session.sparkContext.cancelAllJobs()

    def driver(self):
        """Its process."""
        return self.session.sparkContext._gateway.proc.pid

    def executors(self):
        """Their processes: children of the driver."""
        found = subprocess.run(["pgrep", "--parent", str(self.driver())], capture_output=True, text=True, check=False)
        return set(map(int, found.stdout.split()))
