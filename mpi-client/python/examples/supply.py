"""The Spark side of train_digits.py, decode_images.py and column_means.py, which say how to start both sides.

SOURCE is `lmdb` with digits, `images` of any format as they are, or `parquet`, of which Spark's means are printed, too.
"""

import argparse

from pyspark.sql import SparkSession, functions


def rows_of(spark, arguments):
    if arguments.source == "lmdb":
        digits = spark.read.format("lmdb").option("partitions", 4 * arguments.ranks).load(arguments.path)
        return digits.select("key", "data", "label")
    # Spark assigns partitions to ranks, and a small file is a single partition.
    if arguments.source == "images":
        files = spark.read.format("binaryFile").load(arguments.path)
        return files.select("path", "content").repartition(2 * arguments.ranks)
    return spark.read.parquet(arguments.path).select(arguments.columns).repartition(4 * arguments.ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", metavar="SOURCE", choices=("lmdb", "images", "parquet"))
    parser.add_argument("path", metavar="PATH", help="file or folder; of images also a pattern")
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("columns", metavar="COLUMN", nargs="*", help="of parquet: columns of numbers without nulls")
    parser.add_argument("--ranks", type=int, default=2, help="(default 2)")
    parser.add_argument("--epochs", type=int, default=1, help="(default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the partitions (default 0)")
    parser.add_argument("--timeout", type=float, default=120, help="limit of each wait in seconds (default 120)")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("supply").getOrCreate()
    rows = rows_of(spark, arguments)
    (
        rows.write.format("supply")
        .mode("append")
        .option("mapped-files", f"{arguments.config}/mapped-files.conf")
        .option("named-pipes", f"{arguments.config}/named-pipes.conf")
        .option("ranks", arguments.ranks)
        .option("epochs", arguments.epochs)
        .option("seed", arguments.seed)
        .option("timeout", arguments.timeout)
        .save()
    )
    if arguments.columns:
        means = rows.agg(*(functions.mean(name) for name in arguments.columns)).first()
        for name, mean in zip(arguments.columns, means):
            print(f"supply: {name} mean={mean!r}")
    spark.stop()


if __name__ == "__main__":
    main()
