"""Executors whose host has a name with capitals, or an address of IPv6 alone; their settings; and none at all."""

import importlib
import os
import socket

import pytest

from layout import ROOT
from supplier_session import found_by

ROWS = 100


def runs(environment, start_timeout=120):
    """What the runs of the program return: with each launcher, host and MASTER_ADDR of the ranks, and rows."""
    return found_by("hosts_program.py", start_timeout, **environment)


@pytest.mark.long
def test_ipv6_alone():
    with socket.socket(socket.AF_INET6) as own:
        try:
            own.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Djava.net.preferIPv6Addresses=true"
    found = runs({"SPARK_LOCAL_IP": "::1", "SPARK_SUBMIT_OPTS": options})
    assert found == [[[["[::1]", "::1"]] * 2, ROWS]] * 2


@pytest.mark.long
def test_a_host_name_with_capitals():
    assert runs({"SPARK_LOCAL_HOSTNAME": "LocalHost"}) == [[[["LocalHost", "LocalHost"]] * 2, ROWS]] * 2


def conf(*settings):
    return {"PYSPARK_SUBMIT_ARGS": " ".join([*(f"--conf spark.{setting}" for setting in settings), "pyspark-shell"])}


@pytest.mark.long
def test_settings_of_tasks_and_workers():
    settings = conf(
        "task.cpus=2", "executor.pyspark.memory=1g",
        "python.worker.idleTimeoutSeconds=15", "python.worker.killOnIdleTimeout=true",
        "speculation=true", "speculation.interval=10ms", "speculation.multiplier=1.01", "speculation.quantile=0.1",
        "speculation.minTaskRuntime=0ms", "speculation.task.duration.threshold=1s",
    )  # fmt: skip
    found = runs({**settings, "SLEEP_SECONDS": "20"})
    assert [[len(hosts), rows] for hosts, rows in found] == [[2, ROWS]] * 2


@pytest.mark.long
def test_speculation_on_several_hosts(tmp_path, monkeypatch):
    tests = ROOT / "launch/tests"
    for folder in (tests, tests / "faults"):
        monkeypatch.syspath_prepend(folder)
    standalone = importlib.import_module("standalone")
    # Each worker is a host. On one machine they share the folder of a run's files: so there is one rank. Spark tries
    # a copy of its starter on each other host, and one failure would end the run.
    settings = conf(
        "task.maxFailures=1", "executor.memory=512m", "driver.host=127.0.0.1",
        "speculation=true", "speculation.interval=100ms", "speculation.task.duration.threshold=2s",
    )  # fmt: skip
    cluster = standalone.Standalone(tmp_path, workers=3, cores=4)
    try:
        names = {
            "TEST_MASTER": cluster.master,
            "TEST_LAUNCHERS": "torch",
            "TEST_RANKS": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        found = runs({**settings, **names, "SLEEP_SECONDS": "15"})
    finally:
        cluster.stop()
    assert isinstance(found[0], list), found
    assert [[len(hosts), rows] for hosts, rows in found] == [[1, ROWS]]


@pytest.mark.long
def test_no_executors_at_all():
    # No worker has that number of cores.
    torch, mpirun = runs(conf("executor.cores=99"), start_timeout=3)
    says = "but Spark (local-cluster[1,6,1024]) has too few: there is no executor: raise spark.executor.instances or"
    assert says in torch and says in mpirun
    assert torch.endswith("(waited 3 s for more executors; start_timeout)")
