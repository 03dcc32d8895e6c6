"""A program of PySpark on YARN: `one_call.py JAR DRIVER EPOCHS LAUNCHER...` trains with Supplier.run on both nodes.

DRIVER: this host, as the nodes name it. LAUNCHER: `torch`, `mpirun=HOST_FILE`, or `mpirun` in a job of Slurm.
"""

import os
import sys

import pyspark
from pyspark.sql import SparkSession
from spark_supplier import Mpirun, Rows, Supplier


def train(data):
    import os
    import socket

    from torch import distributed

    ids = [number for epoch in data.epochs() for batch in epoch for number in batch["id"].tolist()]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), os.environ["LOCAL_RANK"], ids))
    return gathered


def train_by_mpi(data):
    import os
    import socket

    from mpi4py import MPI

    ids = [number for epoch in data.epochs() for batch in epoch for number in batch["id"].tolist()]
    return MPI.COMM_WORLD.gather((socket.gethostname(), os.environ["LOCAL_RANK"], ids))


def report(launcher, found):
    places = sorted((host, local_rank) for host, local_rank, _ in found)
    ids = sorted(number for _, _, ids in found for number in ids)
    print(f"{launcher}:", places, len(ids), ids == list(range(1000)))


def session(jar, driver, **others):
    """On YARN, with an executor on each of two nodes. others: settings."""
    settings = {
        "spark.driver.host": driver,
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.extraClassPath": jar,
        "spark.executor.extraClassPath": jar,
        "spark.executor.instances": "2",
        "spark.executor.cores": "3",
        "spark.executor.memory": "512m",
        # It holds the ranks, too.
        "spark.executor.memoryOverhead": "2g",
        "spark.yarn.am.memory": "256m",
        # The nodes see the same file system.
        "spark.yarn.jars": f"local:{os.path.dirname(pyspark.__file__)}/jars/*",
        "spark.ui.enabled": "false",
        **others,
    }
    return SparkSession.builder.master("yarn").config(map=settings).getOrCreate()


def main():
    jar, driver, epochs, *launchers = sys.argv[1:]
    spark = session(jar, driver)
    rows = Rows(spark.range(0, 1000, 1, 8), columns=["id"], batch_size=16, epochs=int(epochs), uneven="keep")
    for words in launchers:
        launcher, _, hosts = words.partition("=")
        if launcher == "torch":
            found = Supplier(ranks=4).run(train, rows)
        else:
            found = Supplier(4, launcher=Mpirun(hosts or None), backend=None).run(train_by_mpi, rows)
        report(launcher, found)
    spark.stop()


if __name__ == "__main__":
    main()
