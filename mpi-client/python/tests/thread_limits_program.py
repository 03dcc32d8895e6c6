"""Runs in a control group with few threads, for test_thread_limit: `thread_limits_program.py GROUP`."""

import os
import pathlib
import sys
import threading
import time

import spark_supplier
from pyspark.sql import SparkSession

GROUP = pathlib.Path(sys.argv[1])


def limit(group, left):
    used = int((group / "pids.current").read_text())
    (group / "pids.max").write_text(str(used + left))


def start_threads(data, group):
    """In a group below, so that Spark keeps its threads."""
    below = pathlib.Path(group, "below")
    below.mkdir()
    (below / "cgroup.procs").write_text(str(os.getpid()))
    limit(below, 5)
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


def failure(ranks, function, frame, *args):
    begin = time.monotonic()
    try:
        spark_supplier.Supplier(ranks, start_timeout=60).run(function, frame, *args)
    except Exception as error:
        return f"{type(error).__name__} after {time.monotonic() - begin:.0f} s: {error}"
    return "it did not fail"


spark = spark_supplier.session(SparkSession.builder.master("local[5]"))
frame = spark.range(100)
print("RANK", failure(1, start_threads, frame, str(GROUP)), flush=True)
limit(GROUP, 40)
print("NODE", failure(4, print, frame), flush=True)
(GROUP / "pids.max").write_text("max")
