"""Ranks in containers and pods of their own: another user, another PID namespace, the pairs by a group."""

import json
import re
import subprocess
import time

import pytest

from conftest import EXECUTORS, ROOT

pytestmark = pytest.mark.long

RANK = """
import os, spark_supplier
from spark_supplier.torch import Dataset
with Dataset(columns=["id"], batch_size=16) as data:
    ids = [number for epoch in data.epochs() for batch in epoch for number in batch["id"].tolist()]
print(f"user {os.getuid()} got {ids}", flush=True)
"""
ROWS, PATIENCE = 1000, 120


@pytest.fixture
def config(cluster, tmp_path):
    """A ConfigMap with config files and the ranks' program. The files' folder here."""
    folder = tmp_path / "config"
    command = [ROOT / "launch" / "make-configs", "--group", "3000", "2", "/dev/shm/run", folder]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "rank.py").write_text(RANK, encoding="utf-8")
    cluster.kubectl("create", "configmap", "supply-run", f"--from-file={folder}")
    yield folder
    cluster.kubectl("delete", "configmap", "supply-run")


def pods(cluster):
    """The executors' pods by address."""
    found = json.loads(cluster.kubectl("get", "pods", "--selector=spark-role=executor", "--output=json"))["items"]
    return {pod["status"].get("podIP"): pod["metadata"]["name"] for pod in found}


def wait_for_executors(spark):
    from spark_supplier.driver.sessions import session_of

    end = time.monotonic() + PATIENCE
    while len(hosts := session_of(spark).slots().slots) < EXECUTORS:
        assert time.monotonic() < end, hosts
        time.sleep(0.5)
    return sorted(hosts)


@pytest.fixture
def prepare(tmp_path):
    """A function that returns a template of configs/kubernetes with the image of this cluster."""

    def prepare(name):
        text = (ROOT / "configs" / "kubernetes" / name).read_text(encoding="utf-8")
        path = tmp_path / name
        path.write_text(text.replace("IMAGE", "localhost/supply-executor:dev"), encoding="utf-8")
        return str(path)

    return prepare


def supply(spark, executors, folder):
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{host} slots=2\n" for host in executors), encoding="utf-8")
    options = {"ranks": 2 * len(executors), "hosts": hosts, "timeout": 120}
    files = {name: f"/etc/supply/{name}.conf" for name in ("mapped-files", "named-pipes")}
    frame = spark.range(0, ROWS, 1, 16)
    frame.write.format("supply").mode("append").options(**options, **files).save()


def assert_all_rows(cluster, pods):
    got = []
    for pod in pods:
        end = time.monotonic() + PATIENCE
        while len(found := re.findall(r"user 1000 got \[(.*)\]", cluster.kubectl("logs", pod, "-c", "ranks"))) < 2:
            assert time.monotonic() < end
            time.sleep(0.5)
        got += [int(number) for ids in found for number in ids.split(",")]
    assert sorted(got) == list(range(ROWS))


def session(driver, template):
    return driver.session(**{"spark.kubernetes.executor.podTemplateFile": template, "spark.locality.wait": "120s"})


def test_ranks_in_a_container_beside_the_executor(cluster, driver, config, prepare, tmp_path):
    spark = session(driver, prepare("executor-and-ranks.yaml"))
    executors = wait_for_executors(spark)
    supply(spark, executors, tmp_path)
    found = pods(cluster)
    assert_all_rows(cluster, [found[host] for host in executors])
    driver.stop()


def test_ranks_in_pods_of_their_own(cluster, driver, config, prepare, tmp_path):
    spark = session(driver, prepare("executor-on-node-memory.yaml"))
    executors = wait_for_executors(spark)
    cluster.kubectl("apply", f"--filename={prepare('ranks.yaml')}")
    try:
        supply(spark, executors, tmp_path)
        cluster.kubectl("wait", "--for=condition=complete", "job/ranks", f"--timeout={PATIENCE}s", seconds=2 * PATIENCE)
        found = cluster.kubectl("get", "pods", "--selector=job=ranks", "--output=name").split()
        assert_all_rows(cluster, found)
        for pod in pods(cluster).values():
            assert cluster.kubectl("exec", pod, "--", "ls", "/dev/shm/run") == ""
    finally:
        cluster.kubectl("delete", "job", "ranks")
        driver.stop()


def test_a_pod_of_another_user_gets_nothing_of_the_nodes_memory(cluster, config, prepare):
    """One with the user's number gets everything, whoever has made it."""
    ranks = prepare("ranks.yaml")
    cluster.kubectl("apply", f"--filename={ranks}")
    try:
        for number, what in ((4321, "Permission denied"), (1000, "read")):
            pod = f"user-{number}"
            read = "head -c 4 /dev/shm/run/pair-0.mapped > /dev/null && echo read"
            wait = "until [ -e /dev/shm/run ]; do sleep 0.2; done; sleep 2"
            overrides = {"spec": {
                "securityContext": {"runAsUser": number, "runAsGroup": number},
                "volumes": [{"name": "memory", "hostPath": {"path": "/dev/shm"}}],
                "containers": [{
                    "name": pod, "image": "localhost/supply-executor:dev", "imagePullPolicy": "Never",
                    "command": ["sh", "-c", f"{wait}; {read}; true"],
                    "volumeMounts": [{"name": "memory", "mountPath": "/dev/shm"}],
                }],
            }}  # fmt: skip
            cluster.kubectl(
                "run", pod, "--image=localhost/supply-executor:dev", "--restart=Never",
                f"--overrides={json.dumps(overrides)}",
            )  # fmt: skip
            end = time.monotonic() + PATIENCE
            while not (said := cluster.kubectl("logs", pod, "--ignore-errors") if is_over(cluster, pod) else ""):
                assert time.monotonic() < end
                time.sleep(0.5)
            assert what in said, said
    finally:
        cluster.kubectl("delete", "job/ranks", "--ignore-not-found", "--cascade=foreground")
        cluster.kubectl("delete", "pods", "user-4321", "user-1000", "--ignore-not-found", "--force", "--grace-period=0")


def is_over(cluster, pod):
    return cluster.kubectl("get", "pod", pod, "--output=jsonpath={.status.phase}") in ("Succeeded", "Failed")
