"""Runs of an application whose executors have GPUs: `gpu_program.py FOLDER DISCOVERY`.

For test_gpus. There need not be a GPU: Spark believes the script DISCOVERY, which names one for each worker.
"""

import concurrent.futures
import json
import os
import sys

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows

SETTINGS = {"spark.jars": spark_supplier.jars(), "spark.ui.enabled": "false", "spark.log.level": "OFF"}
ON_CLUSTER = {
    "spark.worker.resource.gpu.amount": "1", "spark.executor.resource.gpu.amount": "1",
    "spark.task.resource.gpu.amount": "1",
    "spark.executor.pyspark.memory": "2g",
}  # fmt: skip
OF_DRIVER = {"spark.driver.resource.gpu.amount": "1"}
OF_TASKS = {"spark.executor.resource.gpu.amount": "1", "spark.task.resource.gpu.amount": "1"}


def describe(data):
    import os
    import resource

    from torch import distributed

    for _ in data:
        pass
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "LOCAL_RANK")
    mine = [*map(os.environ.get, names), resource.getrlimit(resource.RLIMIT_AS)[0]]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, mine)
    return gathered


def meet(data, folder, number):
    """Returns when both runs are here."""
    import os
    import pathlib
    import time

    pathlib.Path(folder, str(number)).touch()
    end = time.monotonic() + 60
    while not pathlib.Path(folder, str(1 - number)).exists():
        assert time.monotonic() < end, "the other run has not begun"
        time.sleep(0.05)
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def card(data):
    import os

    return os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid()


def beside_idle_ranks(spark, folder, run):
    """Runs of one rank and of two, while a rank waits for a call."""
    with spark_supplier.Supplier(1, folder=folder, backend=None) as warm:
        gpu, process = warm.run(card, spark.range(0, 20, 1, 2))
        process = f"/proc/{process}"
        return {
            "idle": gpu,
            "one": run(spark, 1)[0][0], "after one": os.path.exists(process),
            "two": run(spark, 2)[0][0], "after two": os.path.exists(process),
        }  # fmt: skip


def main():
    folder, discovery = sys.argv[1:]
    scratch = os.path.dirname(discovery)

    ON_CLUSTER["spark.worker.resource.gpu.discoveryScript"] = discovery
    OF_DRIVER["spark.driver.resource.gpu.discoveryScript"] = discovery

    def session(master, *settings):
        builder = SparkSession.builder.master(master)
        for name, value in {name: value for some in (SETTINGS, *settings) for name, value in some.items()}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def run(spark, ranks, function=describe, args=(), **options):
        supplier = spark_supplier.Supplier(ranks, folder=folder, **options)
        try:
            return supplier.run(function, Rows(spark.range(0, 20, 1, 2), uneven="keep"), *args)
        except spark_supplier.RunError as error:
            return str(error)

    spark = session("local-cluster[2,2,1024]", ON_CLUSTER)
    found = {
        "one": run(spark, 1),
        "two": run(spark, 2),
        "given": run(spark, 2, environment={"CUDA_VISIBLE_DEVICES": "7", "OMP_NUM_THREADS": "4"}),
        "three": run(spark, 3),
    }
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found["at once"] = list(pool.map(lambda number: run(spark, 1, meet, (scratch, number)), (0, 1)))
    found["beside idle ranks"] = beside_idle_ranks(spark, folder, run)
    spark.stop()
    for name in ON_CLUSTER:
        # The JVM keeps the settings of its first session for all of them.
        spark._jvm.System.clearProperty(name)
    spark = session("local[3]", OF_DRIVER)
    found["driver"] = run(spark, 2)
    spark.stop()
    spark = session("local[3]", OF_TASKS)
    found["local tasks"] = run(spark, 2)
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
