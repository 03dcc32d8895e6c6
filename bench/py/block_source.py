"""Supplies rows that lie in Spark's memory. Each line of JSON on stdin is one run."""

import json
import sys

import session

WIDTH = 784
SINGLE = 7


def samples(spark, rows, partitions):
    """Each number of a row is its label modulo 7: those of a list, and those of columns of single numbers."""
    features = f"array_repeat(cast(id % 7 AS float), {WIDTH}) AS features"
    single = [f"cast(id % 7 AS float) AS x{i}" for i in range(SINGLE)]
    return spark.range(0, rows, 1, partitions).selectExpr(features, "id AS label", *single).persist()


def tally(frame):
    """Sums of small integers do not depend on their order."""
    sums = frame.selectExpr("count(*)", f"sum(label % 7) * {WIDTH}", "sum(label)").first()
    return {"samples": sums[0], "features": sums[1], "label": sums[2]}


def main():
    local_dir, jar, heap_mib, ranks, rows = sys.argv[1:]
    spark = session.start(local_dir, heap_mib, ranks, {"spark.jars": jar})
    try:
        # One partition for each rank, so that every block is full.
        frame = samples(spark, int(rows) * int(ranks), int(ranks))
        print(json.dumps({"jvm_pid": session.jvm_pid(spark), "tally": tally(frame)}), flush=True)
        for line in sys.stdin:
            frame.write.format("supply").mode("append").options(**json.loads(line)).save()
            print("{}", flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
