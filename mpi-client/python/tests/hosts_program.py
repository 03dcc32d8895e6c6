"""Runs on executors with settings of the environment: `hosts_program.py FOLDER START_TIMEOUT`.

For test_supplier_hosts, which sets SPARK_LOCAL_IP, SPARK_LOCAL_HOSTNAME, PYSPARK_SUBMIT_ARGS, TEST_MASTER,
TEST_LAUNCHERS or TEST_RANKS. An error is printed as a text.
"""

import json
import os
import sys

from supplier_session import prepare_environment

prepare_environment()
os.environ["PYSPARK_PYTHON"] = sys.executable

import spark_supplier  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_supplier import Mpirun, Rows  # noqa: E402

ROWS = 100
LIMIT = float(sys.argv[2])


def predict(data):
    import os
    import time

    from torch import distributed

    # Longer than an idle worker may live.
    time.sleep(float(os.environ.get("SLEEP_SECONDS", "0")))
    with data.results() as out:
        for batch in data:
            out.write(batch)
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, [os.environ["SUPPLY_HOST"], os.environ["MASTER_ADDR"]])
    return gathered


def main():
    settings = {"spark.jars": spark_supplier.jars(), "spark.ui.enabled": "false", "spark.log.level": "OFF"}
    builder = SparkSession.builder.master(os.environ.get("TEST_MASTER", "local-cluster[1,6,1024]"))
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    found: list[object] = []
    for launcher in os.environ.get("TEST_LAUNCHERS", "torch mpirun").split():
        supplier = spark_supplier.Supplier(
            int(os.environ.get("TEST_RANKS", "2")),
            launcher=Mpirun() if launcher == "mpirun" else "torch",
            folder=sys.argv[1],
            start_timeout=LIMIT,
        )
        try:
            run = supplier.run(predict, Rows(spark.range(0, ROWS, 1, 4), uneven="keep"), results="id")
        except spark_supplier.RunError as error:
            found.append(str(error))
            continue
        found.append([run.value, run.rows.count()])
        run.release()
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
