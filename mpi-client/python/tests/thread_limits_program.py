"""Runs in a control group with few threads, for test_thread_limit: `thread_limits_program.py GROUP`."""

import os
import pathlib
import sys
import threading
import time

import spark_supplier
from pyspark.sql import SparkSession

GROUP = pathlib.Path(sys.argv[1])


def start_threads(data, group):
    """In a group below, so that Spark keeps its threads."""
    below = pathlib.Path(group, "below")
    below.mkdir()
    (below / "cgroup.procs").write_text(str(os.getpid()))
    used = int((below / "pids.current").read_text())
    (below / "pids.max").write_text(str(used + 5))
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


spark = spark_supplier.session(SparkSession.builder.master("local[2]"))
try:
    spark_supplier.Supplier(1, start_timeout=60).run(start_threads, spark.range(100), str(GROUP))
except spark_supplier.RunError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
