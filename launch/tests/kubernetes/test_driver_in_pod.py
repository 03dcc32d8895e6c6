"""Supplier.run with the driver in a pod, too (configs/kubernetes/driver.yaml)."""

import re
import time

import pytest
from mini_kubernetes.one_call import IMAGE, settings

from conftest import EXECUTORS, RANKS, ROOT

pytestmark = pytest.mark.long

CONFIGS = ROOT / "configs" / "kubernetes"
# driver.yaml has these.
OF_DRIVER = re.compile(r"spark\.(master|driver\..*|kubernetes\.container\.image|.*podTemplateFile)")
PROGRAM = """
import spark_supplier
from pyspark.sql import SparkSession


def train(data):
    import socket

    from torch import distributed

    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), sum(len(batch["id"]) for batch in data)))
    return gathered


spark = spark_supplier.session(SparkSession.builder.config(map={settings!r}))
gathered = spark_supplier.Supplier({ranks}, start_timeout=240).run(
    train, spark_supplier.Rows(spark.range(0, 1000, 1, 16), uneven="keep")
)
print(f"nodes={{len(dict(gathered))}} ranks={{len(gathered)}} rows={{sum(rows for _, rows in gathered)}}")
spark.stop()
"""
PATIENCE = 300


def test_a_driver_in_a_pod(cluster, driver, tmp_path):
    driver.stop()
    own = {
        name: value
        for name, value in settings(EXECUTORS, RANKS // EXECUTORS + 1).items()
        if not OF_DRIVER.fullmatch(name)
    }
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(settings=own, ranks=RANKS), encoding="utf-8")
    text = (CONFIGS / "driver.yaml").read_text(encoding="utf-8")
    pod = tmp_path / "driver.yaml"
    pod.write_text(text.replace("IMAGE", IMAGE).replace("MASTER", cluster.environment["SPARK_MASTER"]))
    files = [f"--from-file={file}" for file in (program, CONFIGS / "executor.yaml")]
    cluster.kubectl("create", "configmap", "driver", *files)
    cluster.kubectl("apply", f"--filename={pod}")
    try:
        phase, end = "", time.monotonic() + PATIENCE
        while phase not in ("Succeeded", "Failed") and time.monotonic() < end:
            time.sleep(1)
            phase = cluster.kubectl("get", "pod", "driver", "--output=jsonpath={.status.phase}")
        said = cluster.kubectl("logs", "driver")
        assert phase == "Succeeded", said
        assert f"nodes={EXECUTORS} ranks={RANKS} rows=1000" in said, said
    finally:
        cluster.kubectl("delete", f"--filename={pod}", "--grace-period=0", "--force")
        cluster.kubectl("delete", "configmap", "driver")
