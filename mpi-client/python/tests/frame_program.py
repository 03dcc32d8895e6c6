"""A frame whose partitions have its data, on executors of their own: `frame_program.py FOLDER`."""

import os
import pathlib
import signal
import sys

import numpy
import pandas
from pyspark.sql.functions import monotonically_increasing_id
from spark_supplier import Rows, Supplier

from supplier_session import made_session

ROWS, WIDTH, ROWS_OF_PARTITION = 12000, 32, 2000
SETTINGS = {
    # MiB. A partition fits, and all partitions of a rank do not.
    "spark.rpc.message.maxSize": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_OF_PARTITION),
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}


def predict(data):
    with data.results() as out:
        for batch in data:
            out.write(batch | {"prediction": batch["features"][:, 0]})
    return sum(len(batch["label"]) for batch in data.validation)


def executor_of_task(_):
    process = pathlib.Path("/proc/self").resolve()
    while b"CoarseGrainedExecutorBackend" not in (process / "cmdline").read_bytes():
        process = process.parent / (process / "stat").read_text().rpartition(")")[2].split()[1]
    return int(process.name)


def main(spark):
    features = numpy.random.default_rng(1).random((ROWS, WIDTH), "float32")
    frame = spark.createDataFrame(pandas.DataFrame({"id": range(ROWS), "features": list(features)}))
    # Spark gives a row another number when it computes this again.
    df = frame.union(frame.repartition(4)).selectExpr("*", "features[0] as label")
    df = df.withColumn("number", monotonically_increasing_id()).cache()
    results = "number, label, prediction float not null"
    run = Supplier(ranks=1, folder=sys.argv[1], backend=None).run(predict, Rows(df, validation=df), results=results)
    print("validated", run.value, flush=True)
    os.kill(spark.sparkContext.parallelize([0], 1).map(executor_of_task).first(), signal.SIGKILL)
    print("predicted", run.rows.distinct().where("prediction = label").count(), flush=True)
    run.release()


if __name__ == "__main__":
    with made_session("local-cluster[1,3,1024]", SETTINGS) as made:
        main(made)
