"""A function that stops at a breakpoint, in the program's own process: `here_program.py FOLDER`."""

import os
import sys
import threading

from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session

seen: list[int] = []


def train(data, limit):
    total = 0
    for batch in data:
        total += int(batch["id"].sum())
        # The program's own list, of which a rank elsewhere has a copy.
        seen.append(len(batch["id"]))
        if len(seen) == limit:
            breakpoint()
    return total, os.getpid(), threading.current_thread() is threading.main_thread()


spark = session(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false"))
supplier = Supplier(1, launcher="here", folder=sys.argv[1])
total, process, is_main = supplier.run(train, Rows(spark.range(10), batch_size=4), limit=2)
print(f"total {total}, in this process: {process == os.getpid()}, in its main thread: {is_main}, batches: {seen}")
spark.stop()
