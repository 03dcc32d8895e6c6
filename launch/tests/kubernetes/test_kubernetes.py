"""Supplier.run with executors as pods on two nodes, and ranks in their containers, whose root is read-only."""

import json
import pathlib
import threading
import time

import pytest
from mini_kubernetes.commands import ClusterError
from spark_supplier import Rows, Supplier
from spark_supplier.errors import RankError, RunError

from rank_functions import gather, save_until_lost, take_memory, take_one_and_wait

pytestmark = pytest.mark.long

ROWS, RANKS = 1000, 4
# In seconds. None of them measures: they end what hangs.
START, PATIENCE = 240, 300
# A node that says nothing is lost.
LOST_SOON = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}


def frame(spark):
    return spark.range(0, ROWS, 1, 4 * RANKS)


def run(spark, function, order="ranks", **options):
    """options: of the Supplier."""
    return Supplier(RANKS, **{"start_timeout": START, **options}).run(
        function, Rows(frame(spark), uneven="keep", order=order)
    )


def executors(cluster):
    pods = json.loads(cluster.kubectl("get", "pods", "--selector=spark-role=executor", "--output=json"))["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods if pod["status"]["phase"] == "Running"}


def left_behind(cluster):
    """Files and processes of runs, here and in the executors' pods."""
    files = [str(path) for path in pathlib.Path("/dev/shm").glob("supply-spark-*")]
    for pod in executors(cluster):
        script = "ls -d /dev/shm/supply-*; grep -las [s]park_supplier.node /proc/[0-9]*/cmdline; true"
        files += cluster.kubectl("exec", pod, "--", "sh", "-c", f"{{ {script}; }} 2>/dev/null").split()
    return files


def assert_nothing_left(cluster, seconds=10):
    end = time.monotonic() + seconds
    left = ["not asked"]
    while left and time.monotonic() < end:
        try:
            left = left_behind(cluster)
        except ClusterError as error:
            left = [str(error)]
        time.sleep(0.5)
    assert left == []


def assert_all_rows(gathered):
    assert sorted(number for _, ids in gathered for number in ids) == list(range(ROWS))
    assert sorted(len([host for host, _ in gathered if host == each]) for each in {host for host, _ in gathered}) == [
        2,
        2,
    ]


def ends_while(spark, function, disturb, capfd, **options):
    """Begins a run, disturbs it when all ranks have a batch, and returns what it returns or raises."""
    ended = []

    def begin():
        try:
            ended.append(run(spark, function, **options))
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    seen, end = "", time.monotonic() + START
    while seen.count("has a batch") < RANKS and thread.is_alive() and time.monotonic() < end:
        seen += capfd.readouterr().out
        time.sleep(0.2)
    assert seen.count("has a batch") >= RANKS, (seen, ended)
    disturb()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return ended[0]


def test_ranks_on_both_nodes_get_each_row_once(cluster, driver):
    spark = driver.session()
    assert_all_rows(run(spark, gather))
    assert sorted(executors(cluster).values()) == ["node-1", "node-2"]
    assert_nothing_left(cluster)


def test_an_executors_pod_is_deleted(cluster, driver, capfd):
    """The run fails with one message, and the next one has a new pod."""
    spark = driver.session()
    run(spark, gather)
    pod = sorted(executors(cluster))[0]

    def delete():
        cluster.kubectl("delete", "pod", pod, "--force", "--grace-period=0")

    error = ends_while(spark, take_one_and_wait, delete, capfd)
    assert isinstance(error, RunError) and "\n" not in str(error), error
    assert_nothing_left(cluster)
    assert_all_rows(run(spark, gather))
    assert pod not in executors(cluster)


def test_a_rank_meets_the_memory_limit(cluster, driver):
    spark = driver.session()
    with pytest.raises(RankError, match="rank 1 on .* was killed by SIGKILL .*ran out of memory") as raised:
        run(spark, take_memory)
    assert raised.value.rank == 1
    assert_nothing_left(cluster)


def test_a_pod_without_a_volume_for_shared_memory(driver, tmp_path):
    """Rings of the usual size fit."""
    template = tmp_path / "template.yaml"
    template.write_text("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: executor}]}\n", encoding="utf-8")
    spark = driver.session(**{"spark.kubernetes.executor.podTemplateFile": str(template)})
    with pytest.raises(RunError, match=r"the rings of the ranks need 80 MiB: /dev/shm on .* has 64 MiB.* emptyDir"):
        run(spark, gather, ring="40MiB")
    assert_all_rows(run(spark, gather))


def test_rings_that_do_not_fit_into_the_containers_memory(driver):
    spark = driver.session(**{"spark.executor.memoryOverhead": "128m"})
    expected = r"need 500 MiB, but of their container's memory limit on .*, 640 MiB, \d+ MiB are left: raise"
    with pytest.raises(RunError, match=expected):
        run(spark, gather, ring="250MiB")


def test_a_node_is_cut_off(cluster, driver, capfd):
    """Nothing of the run is left on that node either, when it can be reached again."""
    spark = driver.session(**LOST_SOON)
    try:
        error = ends_while(spark, take_one_and_wait, lambda: cluster.cut("node-2"), capfd)
    finally:
        cluster.cut("node-2", off=False)
    assert isinstance(error, RunError) and "\n" not in str(error), error
    assert_nothing_left(cluster, PATIENCE)
    driver.stop()


def test_a_node_is_cut_off_and_the_run_goes_on_without_it(cluster, driver, capfd, tmp_path):
    """From a checkpoint, and each row comes once. Spark may get another executor on the node that is left."""
    spark = driver.session(**LOST_SOON)
    run(spark, gather)
    lost = {pod for pod, node in executors(cluster).items() if node == "node-2"}
    options = {"order": "global", "checkpoints": tmp_path, "start_timeout": 45}
    try:
        found = ends_while(
            spark, save_until_lost, lambda: cluster.cut("node-2"), capfd, **options, min_ranks=2, restarts=3
        )
    finally:
        cluster.cut("node-2", off=False)
    assert isinstance(found, tuple), found
    shares, restarts = found
    assert 1 <= restarts <= 3
    assert len(shares) in (2, 3, 4) and not {host for host, _ in shares} & lost
    assert sorted(row for _, rows in shares for row in rows) == list(range(ROWS))
    assert_nothing_left(cluster, PATIENCE)
    driver.stop()
