"""A DataFrame and a stream to two ranks without PyTorch, and their rows back. Prints how many, and a sum, for each."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

import spark_supplier
from pyspark.sql import SparkSession

ROWS, RANKS, PARTITIONS = 10000, 2, 8
LIMIT_SECONDS = 60
RANK = """
import sys, spark_supplier
with spark_supplier.ranks.open() as s, s.results(sys.argv[1]) as out:
    for block in s:
        number = block.numpy("number")
        out.write({"number": number, "double": 2 * number})
"""


@contextlib.contextmanager
def ranks(result, options):
    """They run while the body supplies them, and write this result."""
    files = {"SUPPLY_MAPPED_FILES": options["mapped-files"], "SUPPLY_NAMED_PIPES": options["named-pipes"]}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, result],
            env={**os.environ, **files, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(RANKS)
    ]
    try:
        yield
        assert [rank.wait(LIMIT_SECONDS) for rank in started] == [0] * RANKS
    finally:
        for rank in started:
            rank.kill()
            rank.wait()


def print_result(result, options):
    back = spark.read.format("supply").options(results=result, **options).load()
    [row] = back.selectExpr("count(distinct number) as rows", "sum(double) as sum").collect()
    print(f"{result}: rows={row.rows} sum={row['sum']}")
    spark_supplier.offload.release(back)


spark = spark_supplier.session(SparkSession.builder.master(f"local[{RANKS}]").config("spark.ui.enabled", False))
df = spark.range(0, ROWS, 1, PARTITIONS).withColumnRenamed("id", "number")
with tempfile.TemporaryDirectory(prefix="supply-matrix-", dir="/dev/shm") as folder:
    make_configs = pathlib.Path(sys.executable).with_name("supply-make-configs")
    subprocess.run([make_configs, str(RANKS), f"{folder}/pairs", folder], check=True)
    options = {
        "ranks": RANKS,
        "mapped-files": f"{folder}/mapped-files.conf",
        "named-pipes": f"{folder}/named-pipes.conf",
    }
    with ranks("rows", options):
        df.write.format("supply").mode("append").options(**options).save()
    print_result("rows", options)

    df.write.parquet(f"{folder}/files")
    stream = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", PARTITIONS // 2).parquet(f"{folder}/files")
    with ranks("stream", options):
        query = (
            stream.writeStream.format("supply").options(checkpointLocation=f"{folder}/checkpoint", **options).start()
        )
        query.processAllAvailable()
        query.stop()
    print_result("stream", options)
spark.stop()
