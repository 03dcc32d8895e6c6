"""The Spark side of test_streams: supplies the files of a folder, one for each batch. The Python of build/venv runs it.

Arguments: folder of the files, folder of the config files, number of the last batch.
"""

import sys

from pyspark.sql import SparkSession

POLL_SECONDS = 0.1


def main(folder, config, last_batch):
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.readStream.schema("id long, point array<float>").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    writer = (
        rows.writeStream.format("supply")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .option("block-elements", 4)
    )
    writer.option("mapped-files", f"{config}/mapped-files.conf").option("named-pipes", f"{config}/named-pipes.conf")
    query = writer.start()
    while not query.awaitTermination(POLL_SECONDS):
        if query.lastProgress and query.lastProgress["batchId"] == int(last_batch):
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
