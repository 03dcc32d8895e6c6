"""Runs of an application whose executors have GPUs: `gpu_program.py FOLDER DISCOVERY`.

For test_gpus. There need not be a GPU: Spark believes the script DISCOVERY, which names two.
"""

import json
import os
import sys

from supplier_session import prepare_environment

prepare_environment()
os.environ["PYSPARK_PYTHON"] = sys.executable
# spark-submit and PySpark would set it. This is the driver's, which is another machine.
os.environ["OMP_NUM_THREADS"] = "9"

import supply.spark  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

SETTINGS = {
    "spark.jars": supply.spark.jars(), "spark.ui.enabled": "false", "spark.log.level": "OFF",
    "spark.worker.resource.gpu.amount": "2", "spark.executor.resource.gpu.amount": "2",
    "spark.task.resource.gpu.amount": "1",
    "spark.executor.pyspark.memory": "2g",
    # All that can come: an error for want of slots comes at once.
    "spark.executor.instances": "1",
}  # fmt: skip


def describe(data):
    import os
    import resource

    from torch import distributed

    for _ in data:
        pass
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
    mine = [*map(os.environ.get, names), resource.getrlimit(resource.RLIMIT_AS)[0]]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, mine)
    return gathered


def main():
    folder, discovery = sys.argv[1:]
    builder = SparkSession.builder.master("local-cluster[1,3,1024]")
    for side in ("worker", "executor"):
        builder = builder.config(f"spark.{side}.resource.gpu.discoveryScript", discovery)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def run(ranks, **options):
        supplier = supply.spark.Supplier(ranks, folder=folder, **options)
        try:
            return supplier.run(describe, spark.range(0, 20, 1, 2), uneven="keep")
        except supply.spark.RunError as error:
            return str(error)

    found = {
        "two": run(2),
        "given": run(2, environment={"CUDA_VISIBLE_DEVICES": "7", "OMP_NUM_THREADS": "4"}),
        "three": run(3),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
