"""What Spark's JVM holds after each epoch of many partitions: `partitions_program.py FOLDER PARTITIONS EPOCHS KIND…`.

Prints a JSON object. For each kind of frame (none named: all): the rows of all epochs, as many as Spark itself counts,
and what the JVM holds after each epoch.
"""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import pandas
import spark_supplier
import spark_supplier.errors
from pyspark.sql import Window, functions
from spark_supplier import Rows, Supplier

from supplier_session import made_session

WAIT_SECONDS = 120


def epochs_of(data, epochs, folder):
    """Ranks meet the driver after each epoch, so the task waits while it measures."""
    rows = 0
    for epoch in range(epochs):
        rows += sum(len(batch["k"]) for batch in data)
        pathlib.Path(folder, f"after-{epoch}").touch()
        limit = time.monotonic() + WAIT_SECONDS
        while not pathlib.Path(folder, f"measured-{epoch}").exists() and time.monotonic() < limit:
            time.sleep(0.005)
    return rows


class Jvm:
    """Spark's JVM, from outside and from inside."""

    def __init__(self, spark, local_dir):
        self._jvm = spark._jvm
        self._pid = self._jvm.java.lang.ProcessHandle.current().pid()
        self._local_dir = local_dir

    def holds(self):
        for _ in range(2):
            self._jvm.java.lang.System.gc()
        runtime = self._jvm.java.lang.Runtime.getRuntime()
        memory = self._jvm.org.apache.spark.SparkEnv.get().memoryManager()
        # Spark makes the folders for the names of its files when it needs them.
        files = [each for each in pathlib.Path(self._local_dir).rglob("*") if each.is_file()]
        return {
            "heap": runtime.totalMemory() - runtime.freeMemory(),
            "execution memory": memory.executionMemoryUsed(),
            "descriptors": len(os.listdir(f"/proc/{self._pid}/fd")),
            "files": len(files),
        }

    def measure(self, folder, epochs, found):
        for epoch in range(epochs):
            limit = time.monotonic() + WAIT_SECONDS
            while not pathlib.Path(folder, f"after-{epoch}").exists() and time.monotonic() < limit:
                time.sleep(0.005)
            found.append(self.holds())
            pathlib.Path(folder, f"measured-{epoch}").touch()


def frames(spark, partitions):
    """Each kind of work that holds something until Spark's task ends."""

    @functions.udf("long")
    def python(value):
        return value + 1

    @functions.pandas_udf("long")
    def vectors(values: pandas.Series) -> pandas.Series:
        return values + 1

    rows = spark.range(0, 20 * partitions, 1, 4).selectExpr("id", "id % 1009 as k")
    other = spark.range(0, 1009, 1, 4).selectExpr("id as k", "id * 2 as double")
    narrow = spark.range(0, 20 * partitions, 1, partitions).selectExpr("id", "id % 1009 as k")
    joined = rows.join(other.hint("merge"), "k")
    return {
        "merge join, Python function": joined.withColumn("more", python("double")),
        "merge join": joined,
        "hash join": rows.join(other.hint("shuffle_hash"), "k"),
        "broadcast join": narrow.join(functions.broadcast(other), "k"),
        "sort": rows.repartition(partitions, "k").sortWithinPartitions("id"),
        "window": rows.withColumn("n", functions.row_number().over(Window.partitionBy("k").orderBy("id"))),
        "aggregation": rows.groupBy("k").agg(functions.sum("id").alias("sum")),
        "Python function": narrow.withColumn("more", python("id")),
        "pandas function": narrow.withColumn("more", vectors("id")),
        "generate": narrow.selectExpr("k", "explode(array(id, id + 1)) as each"),
        "coalesce": rows.repartition(partitions).coalesce(partitions // 10),
    }


def main(folder, partitions, epochs, *kinds):
    found = {}
    with tempfile.TemporaryDirectory() as local_dir, contextlib.ExitStack() as ends:
        settings = {
            "spark.driver.memory": "1g", "spark.local.dir": local_dir, "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(partitions), "spark.ui.showConsoleProgress": "false",
        }  # fmt: skip
        spark = ends.enter_context(made_session("local[3]", settings))
        jvm = Jvm(spark, local_dir)
        all_kinds = frames(spark, partitions)
        for kind in kinds or all_kinds:
            df = all_kinds[kind]
            held: list[dict[str, int]] = []
            with tempfile.TemporaryDirectory() as meeting:
                measuring = threading.Thread(target=jvm.measure, args=(meeting, epochs, held), daemon=True)
                measuring.start()
                try:
                    rows = Supplier(1, folder=folder, backend=None).run(
                        epochs_of,
                        Rows(df, columns=["k"], epochs=epochs, batch_size=4096, repartition=False),
                        epochs,
                        meeting,
                    )
                    measuring.join()
                except spark_supplier.errors.SupplyError as e:
                    rows = str(e)
            found[kind] = {"rows": rows, "of Spark": epochs * df.count(), "held": held}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
