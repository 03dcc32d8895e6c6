"""Ranks in a pod without Java and Spark, whose pod and whose executor's pod are deleted."""

import threading
import time

import pytest
from mini_kubernetes.commands import ClusterError
from mini_kubernetes.elsewhere import remove_ranks, start_ranks
from spark_supplier import Elsewhere, Rows, Supplier

pytestmark = pytest.mark.long

ROWS, RANKS, EPOCHS, PATIENCE = 960, 4, 3, 300
SETTINGS = {"spark.executor.instances": "1", "spark.executor.cores": str(RANKS)}
RANK = """
import time

import spark_supplier
from torch import distributed

distributed.init_process_group("gloo")
with spark_supplier.connect() as data:
    found = data.saved or []
    for epoch in data.epochs():
        for batch in epoch:
            found += batch["id"].tolist()
            data.save(found)
            print("has a batch", flush=True)
            time.sleep(0.3)
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, found)
    found = sum(gathered, [])
    data.report(total=sum(found), rows=len(found), different=len(set(found)), restarts=data.restarts)
distributed.destroy_process_group()
"""


def batches(cluster):
    """Of the ranks' pod, if it is there."""
    try:
        return cluster.kubectl("logs", "--selector=job=ranks-elsewhere").count("has a batch")
    except ClusterError:
        return 0


@pytest.mark.parametrize(
    ("deleted", "restarts", "new_pods"),
    [("job=ranks-elsewhere", 1, 0), ("job=ranks-elsewhere", 3, 6), ("spark-role=executor", 0, 0)],
    ids=["ranks, and a new job", "ranks, and a new pod of the job", "executor"],
)
def test_a_pod_is_deleted_and_each_row_comes_once(cluster, driver, tmp_path, deleted, restarts, new_pods):
    spark = driver.session(**SETTINGS)
    launcher = Elsewhere("train", start=start_ranks(RANKS, RANK, new_pods))
    saved = tmp_path / "saved"
    supplier = Supplier(RANKS, launcher=launcher, start_timeout=PATIENCE, restarts=restarts, checkpoints=saved)
    frame = spark.range(0, ROWS, 1, 2 * RANKS)
    failed = []

    def supply():
        try:
            supplier.run(Rows(frame, batch_size=16, epochs=EPOCHS))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=supply, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + PATIENCE
        while batches(cluster) < RANKS and not failed:
            assert time.monotonic() < end
            time.sleep(0.5)
        cluster.kubectl("delete", "pods", f"--selector={deleted}", "--force", "--grace-period=0")
        assert thread.is_alive(), "deleted too late"
        thread.join(PATIENCE)
        assert not thread.is_alive() and failed == []
    finally:
        remove_ranks()
    reported = supplier.statistics.history[-1]
    assert reported["total"] == EPOCHS * sum(range(ROWS))
    assert (reported["rows"], reported["different"]) == (EPOCHS * ROWS, ROWS)
    assert (reported["restarts"] > 0) == (restarts > 0)
