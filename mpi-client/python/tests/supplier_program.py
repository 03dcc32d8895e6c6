"""A program that trains with Supplier.run, for test_supplier_deaths: `supplier_program.py MASTER FOLDER LAUNCHER`."""

import os
import sys

from supplier_session import prepare_environment

prepare_environment()
# local-cluster has executors, which do not know the driver's Python.
os.environ["PYSPARK_PYTHON"] = sys.executable

import spark_supplier  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_supplier import Mpirun, Rows, Supplier  # noqa: E402


def train(data):
    import time

    for step, _ in enumerate(data):
        if step == 0:
            print("trains")
        # Longer than any test.
        time.sleep(1)


def main():
    builder = SparkSession.builder.master(sys.argv[1]).config("spark.jars", spark_supplier.jars())
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
    try:
        supplier = Supplier(ranks=2, folder=sys.argv[2], launcher=Mpirun() if sys.argv[3] == "mpirun" else "torch")
        supplier.run(train, Rows(spark.range(0, 100000, 1, 4), columns=["id"], batch_size=1))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        spark.stop()
    except Exception as error:
        print(f"failed: {type(error).__name__}: {error}", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
