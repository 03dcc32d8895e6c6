"""Spark's driver and a rank that counts: rows of frames of many kinds, by each way.

It does one round for each line of JSON on stdin and answers each with one.
"""

import json
import sys
import threading
import time

import pyspark
import session
import spark_supplier

EPOCHS = 3
COUNTED = "n bigint"
# The rows: numbers are as random as features are, so that no dictionary makes them small.
DOUBLES = [f"rand({i}) as x{i}" for i in range(8)]
TEXTS = [
    "id",
    "concat('a text of the row ', id) as text",
    "if(id % 10 = 0, null, concat('some text ', id % 1000)) as few",
]
NUMBERS = "array(" + ", ".join(f"rand({i})" for i in range(8)) + ")"
TOKENS = ["id", "transform(sequence(1, 1 + int(id % 15)), i -> int(i * id % 50000)) as tokens"]
STRUCT = [
    "id",
    "named_struct('x', rand(0), 'y', rand(1), 'label', int(id % 10), 'name', concat('n', id % 1000)) as struct",
    "if(id % 10 = 0, null, named_struct('z', rand(2), 'w', rand(3))) as may_be_null",
]


def make(spark, folder, rows, partitions):
    """The frames, by name."""
    from pyspark.ml.functions import array_to_vector

    source = spark.range(0, rows, 1, partitions)

    def parquet(name, expressions):
        path = f"{folder}/{name}"
        # Uncompressed, so that decompression, the same for each way, hides nothing.
        source.selectExpr(*expressions).write.mode("overwrite").option("compression", "none").parquet(path)
        return spark.read.parquet(path)

    def cached(frame):
        held = frame.cache()
        held.count()
        return held

    doubles, numbers = parquet("doubles", DOUBLES), source.selectExpr(f"{NUMBERS} as list")
    return {
        "Parquet, 8 doubles": doubles,
        "the same, x + 1": doubles.selectExpr(*[f"x{i} + 1 as x{i}" for i in range(8)]),
        "cached, 8 doubles": cached(source.selectExpr(*DOUBLES)),
        "after a shuffle (adaptive)": doubles.repartition("x0"),
        "cached, vector of 8": cached(numbers.select(array_to_vector("list").alias("vector"))),
        "Parquet, texts, some null": parquet("texts", TEXTS),
        "Parquet, lists of 1 to 15 ints": parquet("tokens", TOKENS),
        "cached, lists of 1 to 15 ints": cached(source.selectExpr(*TOKENS)),
        "Parquet, structs, some null": parquet("structs", STRUCT),
    }


def path_of(spark, frame):
    """How the Supplier reads it."""
    module = getattr(getattr(spark._jvm.supply.rows, "ColumnarPlan$"), "MODULE$")
    return "columns" if module.columns(frame._jdf.queryExecution().executedPlan()).isDefined() else "rows"


def noop(frame, rows, **_):
    start = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return {"rows": rows, "nanos": nanos(time.monotonic() - start)}


def arrow(frame, rows, **_):
    def count(batches):
        import pyarrow

        yield pyarrow.record_batch([pyarrow.array([sum(batch.num_rows for batch in batches)])], names=["n"])

    start = time.monotonic()
    counted = sum(row.n for row in frame.mapInArrow(count, COUNTED).collect())
    return {"rows": counted, "nanos": nanos(time.monotonic() - start)}


def shuffled(frame, rows, pair, timeout):
    return ours(frame, rows, pair, timeout, shuffle="rows", seed=1)


def ours(frame, rows, pair, timeout, **options):
    """Rows and time of an epoch once the first one has passed, and the time until the first block."""
    start = time.monotonic()
    writer = frame.write.format("supply").mode("append").options(epochs=EPOCHS, timeout=timeout, **options)
    for name in ("mapped_files", "named_pipes"):
        writer = writer.option(name.replace("_", "-"), pair[name])
    failed = []

    def save():
        try:
            writer.save()
        except Exception as error:
            failed.append(error)

    saving = threading.Thread(target=save, daemon=True)
    saving.start()
    counts, ends, first = [], [], None
    with spark_supplier.ranks.open((pair["mapped_files"], pair["named_pipes"]), 0, timeout=timeout) as s:
        for _ in range(EPOCHS):
            count = 0
            for block in s.epoch():
                first = first or time.monotonic()
                count += len(block)
            counts.append(count)
            ends.append(time.monotonic())
    saving.join(timeout)
    if failed:
        raise failed[0]
    wrong = [f"epoch {i} has {count} rows, not {rows}" for i, count in enumerate(counts) if count != rows]
    return {
        "rows": rows,
        "nanos": nanos((ends[-1] - ends[0]) / (EPOCHS - 1)),
        "first_nanos": nanos(first - start),
        "wrong": wrong,
    }


def nanos(seconds):
    return int(1e9 * seconds)


WAYS = {"noop": noop, "supply": ours, "shuffled": shuffled, "mapInArrow": arrow}


def main():
    local_dir, jar, folder, heap_mib, cores, rows, partitions = sys.argv[1:]
    spark = session.start(local_dir, jar, heap_mib, cores)
    try:
        frames = make(spark, folder, int(rows), int(partitions))
        paths = {name: path_of(spark, frame) for name, frame in frames.items()}
        print(json.dumps({"frames": list(frames), "version": pyspark.__version__, "paths": paths}), flush=True)
        for line in sys.stdin:
            what = json.loads(line)
            measured = WAYS[what.pop("way")](frames[what.pop("frame")], int(rows), **what)
            print(json.dumps(measured), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
