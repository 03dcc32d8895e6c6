"""A driver program that trains on a DataFrame, for bench/one_call. It does one run for each line of JSON on stdin."""

import json
import shutil
import sys
import time

import pyspark
import session
from one_call_training import BATCH, COLUMNS, train_parquet, train_partition, train_supplied
from pyspark import StorageLevel
from pyspark.ml.torch.distributor import TorchDistributor
from spark_supplier import Rows, Supplier

WIDTH = 784
# As Petastorm's converter.
ROW_GROUP_BYTES = 32 << 20


def samples(spark, rows, partitions):
    """Each row takes Spark tens of microseconds, as rows do that are decoded or joined."""
    features = f"transform(sequence(0, {WIDTH - 1}), i -> cast((id * i) % 17 AS float)) AS features"
    return spark.range(0, rows, 1, partitions).selectExpr(features, "id AS label")


def tally(frame):
    """Spark's own tally. Sums of small integers do not depend on their order."""
    sums = frame.selectExpr("count(*)", "sum(aggregate(features, 0d, (sum, value) -> sum + value))", "sum(label)")
    samples, features, label = sums.first()
    return {"samples": samples, "features": int(features), "label": label}


def compute(frame, rows, ranks, epochs, folder):
    """Spark's part alone."""
    frame.write.format("noop").mode("overwrite").save()
    return []


def supplied(frame, rows, ranks, epochs, folder):
    return by_supplier(Supplier(ranks), frame, epochs)


def by_supplier(supplier, frame, epochs):
    return supplier.run(train_supplied, Rows(frame, columns=COLUMNS, batch_size=BATCH, epochs=epochs, uneven="keep"))


def supplied_again(frame, rows, ranks, epochs, folder):
    """The second call of the same ranks, with the time when it began."""
    with Supplier(ranks) as supplier:
        by_supplier(supplier, frame, epochs)
        start = time.time()
        return start, by_supplier(supplier, frame, epochs)


def supplied_from_memory(frame, rows, ranks, epochs, folder):
    """Otherwise Spark computes the DataFrame in each epoch."""
    frame.persist(StorageLevel.MEMORY_ONLY)
    try:
        return supplied(frame, rows, ranks, epochs, folder)
    finally:
        frame.unpersist(blocking=True)


def partition_files(frame, rows, ranks, epochs, folder):
    return distributor(ranks)._train_on_dataframe(train_partition, frame, epochs, rows // ranks)


def parquet_files(frame, rows, ranks, epochs, folder):
    cache = f"{folder}/parquet"
    try:
        writer = frame.write.option("compression", "uncompressed").option("parquet.block.size", ROW_GROUP_BYTES)
        writer.parquet(cache)
        return distributor(ranks).run(train_parquet, epochs, cache)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def distributor(ranks):
    return TorchDistributor(num_processes=ranks, local_mode=False, use_gpu=False)


WAYS = {
    "compute": compute,
    "supplier": supplied,
    "supplier, second call": supplied_again,
    "supplier, persisted": supplied_from_memory,
    "partition files": partition_files,
    "parquet files": parquet_files,
}


def main():
    local_dir, jar, heap_mib, ranks, *sizes = (*sys.argv[1:4], *map(int, sys.argv[4:]))
    # A slot for each rank, and one that starts them.
    spark = session.start(local_dir, jar, heap_mib, ranks + 1)
    try:
        if spark.version != pyspark.__version__:
            sys.exit(f"TorchDistributor is of PySpark {pyspark.__version__}, and Spark is {spark.version}")
        frames = {rows: samples(spark, rows, ranks) for rows in sizes}
        tallies = {rows: tally(frame) for rows, frame in frames.items()}
        print(json.dumps({"version": spark.version, "tallies": tallies}), flush=True)
        for line in sys.stdin:
            what = json.loads(line)
            rows = what["rows"]
            start = time.time()
            answers = WAYS[what["way"]](frames[rows], rows, ranks, what["epochs"], local_dir)
            if isinstance(answers, tuple):
                start, answers = answers
            print(json.dumps({"start": start, "end": time.time(), "ranks": answers}), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
