"""Fixtures of the cluster tests (`make test-cluster`). They run in a pytest of their own, with its own Spark."""

import contextlib
import itertools
import os

import pytest

pytest.register_assert_rewrite("cluster_run")

from cluster_run import ClusterRun
from hadoop import Hadoop, hadoop
from places import JAR
from supplier import Supplier

CORES = 3


@pytest.fixture(scope="session")
def nodes_allowed():
    allowed = hadoop("can-have-nodes", check=False)
    if allowed.returncode:
        pytest.skip(f"no nodes on this machine: {allowed.stdout.strip()}")


@pytest.fixture(scope="session")
def cluster(nodes_allowed, tmp_path_factory):
    cluster = Hadoop(tmp_path_factory.mktemp("hadoop"))
    os.environ["HADOOP_CONF_DIR"] = str(cluster.configuration)
    yield cluster
    assert cluster.processes()
    cluster.stop()
    assert cluster("status", check=False).returncode == 3
    assert cluster.processes() == []


@pytest.fixture(scope="session")
def supplier(cluster, tmp_path_factory):
    """A Supplier whose driver runs here: a test does not wait for the start of an application."""
    import pyspark

    # The driver inherits it.
    log = tmp_path_factory.mktemp("driver") / "log"
    stderr = os.dup(2)
    with open(log, "w") as file:
        os.dup2(file.fileno(), 2)
    supplier = Supplier(
        tmp_path_factory.mktemp("spark"),
        master="yarn",
        **{
            "spark.driver.host": cluster.head_address(),
            "spark.driver.bindAddress": "0.0.0.0",
            # The nodes see the same file system.
            "spark.yarn.jars": f"local:{os.path.dirname(pyspark.__file__)}/jars/*",
            "spark.executor.extraClassPath": str(JAR),
            "spark.executor.instances": "2",
            "spark.executor.cores": str(CORES),
            "spark.executor.memory": "512m",
            # For five pairs of the smallest rings.
            "spark.executor.memoryOverhead": "768m",
            # As the Supplier and launch/submit-supplier set them.
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.executor.defaultJavaOptions": "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
            "-XX:OnOutOfMemoryError=true",
            # Tasks start at once on any executor. So the tests see misplaced tasks.
            "spark.locality.wait": "0s",
            # Executors may fail often.
            "spark.executor.maxNumFailures": "1000",
            "spark.yarn.am.memory": "256m",
        },
    )
    os.dup2(stderr, 2)
    os.close(stderr)
    supplier.log = log
    yield supplier
    supplier.stop()


@pytest.fixture(scope="session")
def remote(cluster, database):
    return cluster.put(database)


@pytest.fixture
def make_run(cluster, tmp_path):
    """Makes config files and a host file, with `slots` ranks on each node."""
    with contextlib.ExitStack() as ends:
        made = itertools.count()

        def make(*slots, **settings):
            folder = tmp_path / f"{tmp_path.name}-{next(made)}"
            folder.mkdir()
            run = ClusterRun(cluster, folder, slots, **settings)
            ends.callback(run.end)
            return run

        yield make
