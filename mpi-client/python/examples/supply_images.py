"""Supplies image files, as they are, to the ranks of decode_images.py.

decode_images.py says how to start both.
"""

import argparse

from pyspark.sql import SparkSession


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", metavar="IMAGES", help="folder, or files by a pattern")
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("--ranks", type=int, default=2, help="(default 2)")
    parser.add_argument("--epochs", type=int, default=1, help="(default 1)")
    parser.add_argument("--timeout", type=float, default=120, help="limit of each wait in seconds (default 120)")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("supply-images").getOrCreate()
    files = spark.read.format("binaryFile").load(arguments.images).select("path", "content")
    (
        files.repartition(2 * arguments.ranks)
        .write.format("supply")
        .mode("append")
        .option("mapped-files", f"{arguments.config}/mapped-files.conf")
        .option("named-pipes", f"{arguments.config}/named-pipes.conf")
        .option("ranks", arguments.ranks)
        .option("epochs", arguments.epochs)
        .option("timeout", arguments.timeout)
        .save()
    )
    spark.stop()


if __name__ == "__main__":
    main()
