"""A program of PySpark on mini-kubernetes: trains by Supplier.run, with executors on all nodes and ranks in their pods.

one_call.py EXECUTORS RANKS EPOCHS
"""

import os
import pathlib
import sys

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier

ROWS, SLOPE = 20000, 3.0
TEMPLATE = pathlib.Path(__file__).resolve().parents[4] / "configs" / "kubernetes" / "executor.yaml"
IMAGE = "localhost/supply-executor:dev"


def settings(executors, cores):
    """Of a driver in client mode on the head: `mini-kubernetes on head`."""
    return {
        "spark.master": os.environ["SPARK_MASTER"],
        "spark.driver.host": os.environ["SPARK_LOCAL_IP"],
        "spark.driver.bindAddress": os.environ["SPARK_LOCAL_IP"],
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.executor.podTemplateFile": str(TEMPLATE),
        # Of this machine's processors.
        "spark.kubernetes.executor.request.cores": "100m",
        "spark.executor.instances": str(executors),
        "spark.executor.cores": str(cores),
        "spark.executor.memory": "512m",
        # It holds the ranks and their rings, too.
        "spark.executor.memoryOverhead": "1536m",
        "spark.pyspark.python": "/usr/bin/python3",
        "spark.ui.enabled": "false",
    }


def rows(spark, ranks):
    return (
        spark.range(0, ROWS, 1, 4 * ranks).selectExpr("float(rand(1)) as x").selectExpr("x", f"float({SLOPE} * x) as y")
    )


def train(data):
    import socket

    import torch
    from torch import distributed

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    rows = 0
    for epoch in data.epochs():
        for batch in epoch:
            rows += len(batch["x"])
            loss = (model(batch["x"][:, None])[:, 0] - batch["y"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), rows))
    return model.module.weight.item(), gathered


def main():
    executors, ranks, epochs = map(int, sys.argv[1:])
    builder = SparkSession.builder.config(map=settings(executors, ranks // executors + 1))
    spark = spark_supplier.session(builder)
    weight, gathered = Supplier(ranks, start_timeout=300).run(train, Rows(rows(spark, ranks), epochs=epochs))
    hosts = {host for host, _ in gathered}
    count = sum(each for _, each in gathered)
    spark.stop()
    print(f"nodes={len(hosts)} ranks={len(gathered)} rows={count} weight={weight:.2f}")


if __name__ == "__main__":
    main()
