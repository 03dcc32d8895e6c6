"""Supplies a DataFrame of handwritten digits to the ranks of train_digits.py. See there how to start both."""

import argparse

from pyspark.sql import SparkSession


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lmdb", metavar="LMDB", help="folder of the digits (make build/digits)")
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("--ranks", type=int, default=2, help="(default 2)")
    parser.add_argument("--epochs", type=int, default=1, help="(default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the partitions (default 0)")
    parser.add_argument("--timeout", type=float, default=120, help="limit of each wait in seconds (default 120)")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("supply-digits").getOrCreate()
    digits = spark.read.format("lmdb").option("partitions", 4 * arguments.ranks).load(arguments.lmdb)
    (
        digits.select("key", "data", "label")
        .write.format("supply")
        .mode("append")
        .option("mapped-files", f"{arguments.config}/mapped-files.conf")
        .option("named-pipes", f"{arguments.config}/named-pipes.conf")
        .option("ranks", arguments.ranks)
        .option("epochs", arguments.epochs)
        .option("seed", arguments.seed)
        .option("timeout", arguments.timeout)
        .save()
    )
    spark.stop()


if __name__ == "__main__":
    main()
