"""Runs on executors with settings of the environment: `hosts_program.py FOLDER START_TIMEOUT`.

For test_supplier_hosts, which sets SPARK_LOCAL_IP, SPARK_LOCAL_HOSTNAME, PYSPARK_SUBMIT_ARGS, TEST_MASTER,
TEST_LAUNCHERS or TEST_RANKS. An error is printed as a text.
"""

import json
import os
import sys

import spark_supplier
from spark_supplier import Mpirun, Rows

from supplier_session import made_session

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


def main(spark):
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


if __name__ == "__main__":
    with made_session(os.environ.get("TEST_MASTER", "local-cluster[1,6,1024]")) as made:
        main(made)
