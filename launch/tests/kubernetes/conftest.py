"""A real Kubernetes with two nodes (`make test-kubernetes`), and a driver in client mode: this process."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "launch" / "dev" / "lib"), str(ROOT / "launch" / "dev" / "lib" / "mini_kubernetes")]

from mini_kubernetes import parts
from mini_kubernetes.cluster import Cluster
from mini_kubernetes.one_call import settings

EXECUTORS, RANKS = 2, 4


def pytest_sessionstart():
    """The first time, the daemons are built for longer than a test may take."""
    if Cluster().why_not() is None:
        parts.make(print)


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster()
    why = cluster.why_not()
    if why:
        pytest.skip(f"no Kubernetes on this machine: {why}")
    cluster.start(EXECUTORS, print)
    yield cluster
    cluster.stop()
    left = subprocess.run(["pgrep", "--full", "build/kubernetes/"], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert list(pathlib.Path("/sys/fs/cgroup").glob(f"*/{cluster.name}-*")) == []
    assert cluster.name not in subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout


class Driver:
    """Sessions of Spark, one after another."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._spark = None
        self._settings = None

    def session(self, **others):
        """With the settings of run-kubernetes, and others."""
        import spark_supplier
        from pyspark.sql import SparkSession

        if self._settings != others:
            self.stop()
            wanted = {**settings(EXECUTORS, RANKS // EXECUTORS + 1), **others}
            self._spark, self._settings = spark_supplier.session(SparkSession.builder.config(map=wanted)), others
            self._spark.sparkContext.addPyFile(str(pathlib.Path(__file__).with_name("rank_functions.py")))
        return self._spark

    def stop(self):
        if self._spark is not None:
            self._spark.stop()
            self._cluster.kubectl("delete", "pods", "--selector=spark-role=executor", "--force", "--grace-period=0")
        self._spark = self._settings = None


@pytest.fixture(scope="session")
def driver(cluster):
    os.environ.update(cluster.environment)
    made = Driver(cluster)
    yield made
    made.stop()
