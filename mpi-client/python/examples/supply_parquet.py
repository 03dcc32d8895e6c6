"""Supplies columns of a Parquet file to the ranks of column_means.py, and prints Spark's means of them.

column_means.py says how to start both.
"""

import argparse

from pyspark.sql import SparkSession, functions


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parquet", metavar="PARQUET", help="file or folder")
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("columns", metavar="COLUMN", nargs="+", help="columns of numbers without nulls")
    parser.add_argument("--ranks", type=int, default=2, help="(default 2)")
    parser.add_argument("--timeout", type=float, default=120, help="limit of each wait in seconds (default 120)")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("supply-parquet").getOrCreate()
    frame = spark.read.parquet(arguments.parquet).select(arguments.columns)
    (
        # Spark assigns partitions to ranks, and a small file is a single partition.
        frame.repartition(4 * arguments.ranks)
        .write.format("supply")
        .mode("append")
        .option("mapped-files", f"{arguments.config}/mapped-files.conf")
        .option("named-pipes", f"{arguments.config}/named-pipes.conf")
        .option("ranks", arguments.ranks)
        .option("timeout", arguments.timeout)
        .save()
    )
    means = frame.agg(*(functions.mean(name) for name in arguments.columns)).first()
    for name, mean in zip(arguments.columns, means):
        print(f"supply_parquet: {name} mean={mean!r}")
    spark.stop()


if __name__ == "__main__":
    main()
