"""A Supplier that keeps its ranks while executors and sessions go: `warm_program.py FOLDER`.

For test_warm_ranks_end.
"""

import contextlib
import json
import os
import pathlib
import signal
import sys
import time

from supplier_session import prepare_environment

prepare_environment()
os.environ["PYSPARK_PYTHON"] = sys.executable

import spark_supplier  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_supplier import Supplier  # noqa: E402

LIMIT_SECONDS = 60
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


def started(master):
    builder = SparkSession.builder.master(master).config("spark.jars", spark_supplier.jars())
    return builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()


def of_rank(data):
    return os.getpid(), sum(len(batch["id"]) for batch in data)


def executors():
    """The processes of this session's executors, which are grandchildren of the driver's JVM."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            mark = f"SUPPLY_TEST={os.environ['SUPPLY_TEST']}".encode()
            is_executor = EXECUTOR in (process / "cmdline").read_bytes().split(b"\0")
            if is_executor and mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def is_there(process):
    end = time.monotonic() + LIMIT_SECONDS
    while pathlib.Path(f"/proc/{process}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    return pathlib.Path(f"/proc/{process}").exists()


def main():
    spark = started("local-cluster[1,2,1024]")
    with Supplier(1, folder=sys.argv[1], backend=None) as supplier:

        def run():
            return supplier.run(of_rank, spark.range(0, 100, 1, 2))

        found = {"first": run(), "second": run()}
        (executor,) = executors()
        os.kill(executor, signal.SIGKILL)
        # A call that begins before they have gone loses its ranks in the middle, as any call does whose executor dies.
        is_there(found["second"][0])
        found["after the executor"] = run()
        spark.stop()
        found["with the session"] = is_there(found["after the executor"][0])
        spark = started("local[2]")
        found["in another session"] = run()
        spark.stop()
    found["left"] = [path for path in os.listdir(sys.argv[1]) if path.startswith("supply-")]
    # Without the end of a block, as in a notebook.
    spark = started("local[2]")
    supplier.__enter__()
    found["of the driver"] = run()
    print(json.dumps(found), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
