"""A driver program that predicts for bench/predictions. It does one run for each line of JSON on stdin."""

import json
import sys
import time

import numpy
import predictions_model as model
import session
from pyspark.sql.functions import pandas_udf
from spark_supplier import Rows, Supplier

TOTALS = [f"count({model.SCORE})", f"sum({model.KEY})", f"sum({model.SCORE})"]
SCANS = 3


def small_rows(spark, rows, partitions):
    """A key and eight numbers, in Spark's memory."""
    features = [f"cast((id * {number + 3}) % 17 as float) as {name}" for number, name in enumerate(model.FEATURES)]
    frame = spark.range(0, rows, 1, partitions).selectExpr("id", *features).cache()
    frame.count()
    return frame


def native(frame):
    """Spark's own expression."""
    return totals(frame.selectExpr(model.KEY, f"{model.EXPRESSION} as {model.SCORE}"))


def map_in_pandas(frame):
    return totals(frame.mapInPandas(model.predict_frames, model.SCHEMA.replace(" not null", "")))


def map_in_arrow(frame):
    return totals(frame.mapInArrow(model.predict_arrow, model.SCHEMA.replace(" not null", "")))


def pandas_function(frame):
    predict = pandas_udf(model.predict_series, "float")
    return totals(frame.select(model.KEY, predict(*model.FEATURES).alias(model.SCORE)))


def totals(predictions):
    count, keys, scores = predictions.selectExpr(*TOTALS).first()
    return {"count": count, "keys": keys, "scores": scores}


WAYS = {"native": native, "mapInPandas": map_in_pandas, "mapInArrow": map_in_arrow, "pandas_udf": pandas_function}


def timed(call, *arguments):
    """The seconds of a call, and what it returns."""
    start = time.monotonic()
    value = call(*arguments)
    return time.monotonic() - start, value


def run(way, frame, supplier):
    if way in WAYS:
        seconds, found = timed(WAYS[way], frame)
        return {"seconds": seconds, "totals": found}
    start = time.monotonic()
    with predicted(frame, supplier) as predictions:
        found = totals(predictions.rows)
        seconds = time.monotonic() - start
        scans = [timed(totals, predictions.rows)[0] for _ in range(SCANS)]
    return {"seconds": seconds, "totals": found, "scan": min(scans)}


def predicted(frame, supplier):
    rows = Rows(frame, columns=[model.KEY, *model.FEATURES], batch_size=model.BATCH, zero_copy=True)
    return supplier.run(model.predict_on_rank, rows, results=model.SCHEMA)


def plain_read(size):
    """The seconds that one thread takes to read `size` bytes of memory."""
    memory = numpy.ones(size // 8, "int64")
    return min(timed(memory.sum)[0] for _ in range(SCANS))


def main():
    local_dir, jar, heap_mib, ranks, *sizes = (*sys.argv[1:3], *map(int, sys.argv[3:]))
    # A slot for each rank, and one that starts them: of the ranks that are kept, and of those of a first call.
    spark = session.start(local_dir, jar, heap_mib, 2 * (ranks + 1))
    try:
        frames = {rows: small_rows(spark, rows, ranks) for rows in sizes}
        print(json.dumps({"totals": {rows: native(frame) for rows, frame in frames.items()}}), flush=True)
        with Supplier(ranks, backend=None) as kept:
            for line in sys.stdin:
                what = json.loads(line)
                if "read" in what:
                    answer = {"seconds": plain_read(what["read"])}
                else:
                    supplier = kept if what["way"] == "results" else Supplier(ranks, backend=None)
                    answer = run(what["way"], frames[what["rows"]], supplier)
                print(json.dumps(answer), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
