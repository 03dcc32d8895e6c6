"""The kinds of session: each gives settings of Spark, the environment and the command with which a program finds it."""

import contextlib
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

import pyspark

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEV = ROOT / "launch" / "dev"
sys.path[:0] = [str(ROOT / "mpi-client" / "python" / "tests"), str(DEV / "lib")]

from mini_kubernetes import one_call  # noqa: E402
from mini_kubernetes.cluster import Cluster  # noqa: E402
from spark_supplier import jars  # noqa: E402

from connect_server import connect_server  # noqa: E402

# Executors come for a run, and go after 5 seconds.
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "5s", "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
}  # fmt: skip
LOCAL_CLUSTER = "local-cluster[2,3,1024]"


class Skipped(Exception):
    """This machine cannot start the session's daemons."""


class Place(NamedTuple):
    """Where a program runs. settings: its spark-defaults.conf; command: words in front of the program's."""

    settings: dict[str, str]
    environment: dict[str, str]
    command: tuple[str, ...] = ()


@contextlib.contextmanager
def local(folder):
    yield Place({"spark.master": "local[5]"}, {})


@contextlib.contextmanager
def dynamic(folder):
    yield Place({"spark.master": LOCAL_CLUSTER, **DYNAMIC}, {"PYSPARK_PYTHON": sys.executable})


def _server(master, folder, settings, command=()):
    """Of Spark Connect, which saves what programs save under the folder."""
    words = {name.replace(".", "_"): value for name, value in settings.items()}
    return connect_server(master, jars(), (*command, "env", "-C", folder), **words)


@contextlib.contextmanager
def connect(folder):
    with _server(LOCAL_CLUSTER, folder, DYNAMIC) as server:
        yield Place({}, {"SPARK_REMOTE": server.remote})


def _mini_cluster(folder, *words):
    command = [DEV / "mini-cluster", words[0], "--folder", folder / "hadoop", *words[1:]]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@contextlib.contextmanager
def yarn(folder):
    why = subprocess.run([DEV / "mini-cluster", "can-have-nodes"], stdout=subprocess.PIPE, text=True).stdout
    if why:
        raise Skipped(f"no YARN: {why.strip()}")
    _mini_cluster(folder, "start", "--nodes", "2")
    try:
        settings = {
            "spark.master": "yarn", **DYNAMIC,
            "spark.driver.host": _mini_cluster(folder, "on", "head", "getent hosts head").split()[0],
            "spark.driver.bindAddress": "0.0.0.0", "spark.yarn.jars": f"local:{pyspark.__path__[0]}/jars/*",
            "spark.executor.cores": "3", "spark.executor.memory": "512m", "spark.executor.memoryOverhead": "2g",
            "spark.yarn.am.memory": "256m",
        }  # fmt: skip
        on_head = (str(DEV / "mini-cluster"), "on", "--folder", str(folder / "hadoop"), "head", "exec")
        yield Place(settings, {"PYSPARK_PYTHON": sys.executable}, on_head)
    finally:
        _mini_cluster(folder, "stop")


@contextlib.contextmanager
def connect_on_yarn(folder):
    with yarn(folder) as place, _server("yarn", folder, place.settings, place.command) as server:
        yield Place({}, {"SPARK_REMOTE": server.remote})


@contextlib.contextmanager
def kubernetes(folder):
    cluster = Cluster()
    why = cluster.why_not()
    if why:
        raise Skipped(f"no Kubernetes: {why}")
    shared = folder / "shared"
    shared.mkdir()
    # Pods and driver see it at one path, as a mount of NFS.
    shared.chmod(0o1777)
    cluster.start(2, print)
    try:
        os.environ.update(cluster.environment)
        volume = "spark.kubernetes.executor.volumes.hostPath.shared"
        settings = one_call.settings(2, 3) | {
            f"{volume}.mount.path": str(shared), f"{volume}.options.path": str(shared),
            "spark.sql.warehouse.dir": str(shared),
            # The executors' user writes into folders that the driver's user makes. Hadoop sets the folders' modes.
            "spark.hadoop.fs.permissions.umask-mode": "000",
        }  # fmt: skip
        yield Place(settings, cluster.environment)
    finally:
        cluster.stop()


SESSIONS = {
    "local": local,
    "dynamic": dynamic,
    "connect": connect,
    "yarn": yarn,
    "connect-on-yarn": connect_on_yarn,
    "kubernetes": kubernetes,
}
