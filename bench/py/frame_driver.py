"""Spark's driver and a rank that counts: rows of frames of many kinds, by each way.

It does one round for each line of JSON on stdin and answers each with one.
"""

import functools
import json
import sys
import threading
import time

import pyspark
import session
import spark_supplier
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

EPOCHS = 3
COUNTED = "n bigint"
# The rows: numbers are as random as features are, so that no dictionary makes them small.
NAMES = ["data", *[f"x{i}" for i in range(1, 8)]]
DOUBLES = [f"rand({i}) as {name}" for i, name in enumerate(NAMES)]
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
        "the same, x + 1": doubles.selectExpr(*[f"{name} + 1 as {name}" for name in NAMES]),
        "cached, 8 doubles": cached(source.selectExpr(*DOUBLES)),
        "after a shuffle (adaptive)": doubles.repartition("data"),
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


def without_start(frame, run):
    """Nanoseconds that `run` takes for rows beyond the first: a frame EPOCHS times in one, less the frame once."""

    def seconds(of_frame):
        start = time.monotonic()
        run(of_frame)
        return time.monotonic() - start

    few = seconds(frame)
    return nanos((seconds(functools.reduce(DataFrame.union, [frame] * EPOCHS)) - few) / (EPOCHS - 1))


def noop(frame, rows, **_):
    return {"rows": rows, "nanos": without_start(frame, lambda f: f.write.format("noop").mode("overwrite").save())}


def arrow(frame, rows, **_):
    def count(batches):
        import pyarrow

        yield pyarrow.record_batch([pyarrow.array([sum(batch.num_rows for batch in batches)])], names=["n"])

    counted = []
    taken = without_start(frame, lambda f: counted.append(sum(row.n for row in f.mapInArrow(count, COUNTED).collect())))
    wrong = [f"{counted} rows"] if counted[1] != EPOCHS * counted[0] else []
    return {"rows": counted[0], "nanos": taken, "wrong": wrong}


def shuffled(frame, rows, pair, timeout):
    return ours(frame, rows, pair, timeout, shuffle="rows", seed=1)


def ours(frame, rows, pair, timeout, **options):
    """Rows and time of an epoch once the first one has passed, and the time until the first block."""
    start = time.monotonic()
    failed = []

    def save():
        try:
            share(frame, rows, pair, epochs=EPOCHS, timeout=timeout, **options)
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


def share(frame, rows, pair, **options):
    """To the ranks of these files."""
    files = {name.replace("_", "-"): path for name, path in pair.items()}
    frame.write.format("supply").mode("append").options(**options, **files).save()
    return {}


def in_order(frame, rows, ranks, epochs):
    """To ranks that Spark starts: what they have read, and the processor time of all."""

    def read(data):
        import torch

        start = time.process_time_ns()
        batches = (batch for epoch in data.epochs() for batch in epoch)
        count = sum(values.sum().isfinite() * len(values) for batch in batches for values in batch.values())
        used = torch.tensor([count, time.process_time_ns() - start])
        torch.distributed.all_reduce(used)
        return used.tolist()

    wanted = spark_supplier.Rows(frame, batch_size=4096, epochs=epochs, order="global", uneven="keep")
    count, used = spark_supplier.Supplier(ranks).run(read, wanted)
    return {"rows": count // len(frame.columns), "nanos": used}


def nanos(seconds):
    return int(1e9 * seconds)


WAYS = {"noop": noop, "supply": ours, "shuffled": shuffled, "mapInArrow": arrow, "share": share, "global": in_order}


def main():
    local_dir, jar, folder, heap_mib, cores, rows, partitions = sys.argv[1:]
    spark = session.start(local_dir, jar, heap_mib, cores)
    try:
        frames = make(spark, folder, int(rows), int(partitions))
        paths = {name: path_of(spark, frame) for name, frame in frames.items()}
        about = {"frames": list(frames), "version": pyspark.__version__, "paths": paths}
        about["sum"] = int(frames["cached, 8 doubles"].select("data").toArrow()["data"].to_numpy().view("uint64").sum())
        about["jvm"] = spark._jvm.java.lang.ProcessHandle.current().pid()
        print(json.dumps(about), flush=True)
        for line in sys.stdin:
            what = json.loads(line)
            try:
                measured = WAYS[what.pop("way")](frames[what.pop("frame")], int(rows), **what)
            except Py4JJavaError as error:
                # Workers that read ahead (Spark 4.3) may end before Spark has written all: a page says so.
                measured = {"error": str(error.java_exception.getMessage()).partition("\n")[0]}
            print(json.dumps(measured), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
