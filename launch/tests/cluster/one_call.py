"""A program of PySpark on YARN: `one_call.py JAR HEAD` trains with supply.spark.Supplier on both nodes."""

import sys

from pyspark.sql import SparkSession
from supply.spark import Supplier


def train(data):
    import os
    import socket

    from torch import distributed

    ids = [number for epoch in data.epochs() for batch in epoch for number in batch["id"].tolist()]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), os.environ["LOCAL_RANK"], ids))
    return gathered


def main():
    jar, head = sys.argv[1:]
    settings = {
        "spark.driver.host": head,
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.extraClassPath": jar,
        "spark.executor.extraClassPath": jar,
        "spark.executor.instances": "2",
        "spark.executor.cores": "3",
        "spark.executor.memory": "512m",
        # It holds the ranks, too.
        "spark.executor.memoryOverhead": "2g",
        "spark.yarn.am.memory": "256m",
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("yarn").config(map=settings).getOrCreate()
    found = Supplier(ranks=4).run(train, spark.range(0, 1000, 1, 8), columns=["id"], batch_size=16)
    places = sorted((host, local_rank) for host, local_rank, _ in found)
    ids = sorted(number for _, _, ids in found for number in ids)
    print("one_call:", places, len(ids), ids == list(range(1000)))
    spark.stop()


if __name__ == "__main__":
    main()
