"""A program of PySpark on YARN: `offload.py JAR DRIVER RANKS...` calls a routine of ranks on both nodes.

DRIVER: this host, as the nodes name it. RANKS: `attach`, `start=HOST_FILE`, or `start` in a job of Slurm.
"""

import sys

import numpy
from spark_supplier.offload import MatrixRanks, release

from one_call import session

ROWS, COLUMNS = 4000, 5


def use(spark, ranks):
    """Whether sums, keys and values are those that numpy has."""
    df = spark.range(0, ROWS, 1, 8).selectExpr(
        "'key ' || id as name", f"transform(sequence(1, {COLUMNS}), x -> double(id % 97 * x)) as features"
    )
    values = numpy.outer(numpy.arange(ROWS) % 97, numpy.arange(1, COLUMNS + 1)).astype(float)
    matrix = ranks.matrix(df, features="features", key="name")
    sums = ranks.call("column_sums", matrix, factor=0.5, library="libcolumn_sums.so").to_numpy()
    held = ranks.call("copy", matrix, library="libroutines.so")
    rows = held.to_df()
    by_key = {row["key"]: row["row"] for row in rows.collect()}
    release(rows)
    return (
        (sums == values.sum(axis=0) / 2).all()
        and (numpy.array([by_key[f"key {i}"] for i in range(ROWS)]) == values).all()
        and (numpy.sort(held.to_numpy(), axis=0) == numpy.sort(values, axis=0)).all()
    )


def main():
    jar, driver, *ways = sys.argv[1:]
    spark = session(jar, driver)
    for words in ways:
        way, _, hosts = words.partition("=")
        with MatrixRanks.attach(spark) if way == "attach" else MatrixRanks(spark, 4, host_file=hosts or None) as ranks:
            print(f"{way}: {use(spark, ranks)}", flush=True)
            if way == "attach":
                ranks.close(end_ranks=True)
    spark.stop()


if __name__ == "__main__":
    main()
