"""A run whose executor is killed: `restart_program.py FOLDER`. For test_restarts."""

import collections
import json
import os
import pathlib
import signal
import sys
import tempfile

from supplier_session import prepare_environment

prepare_environment()
os.environ["PYSPARK_PYTHON"] = sys.executable

import spark_supplier  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_supplier import Rows, Supplier  # noqa: E402

ROWS = 96


def executor():
    """The JVM from which this rank descends."""
    process = os.getpid()
    while pathlib.Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


def seen(data):
    found = list(data.saved or [])
    for batch in data:
        found += [int(row) for row in batch["id"]]
        data.save(found)
        if data.restarts == 0 and len(found) == ROWS // 4:
            os.kill(executor(), signal.SIGKILL)
    return found, data.restarts, data.last_failure


def main(folder):
    builder = SparkSession.builder.master("local-cluster[1,2,1024]")
    for name, value in {"spark.ui.enabled": "false", "spark.log.level": "OFF"}.items():
        builder = builder.config(name, value)
    spark = spark_supplier.session(builder)
    with tempfile.TemporaryDirectory() as checkpoints:
        found, restarts, failure = Supplier(
            ranks=1, restarts=1, folder=folder, checkpoints=f"file://{checkpoints}"
        ).run(seen, Rows(spark.range(0, ROWS, 1, 4), batch_size=8, uneven="keep"))
    counts = collections.Counter(found)
    print(json.dumps({"once": sorted(counts.elements()) == list(range(ROWS)), "restarts": restarts, "why": failure}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
