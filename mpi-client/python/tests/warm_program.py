"""A Supplier that keeps its ranks while executors and sessions go: `warm_program.py FOLDER`.

For test_warm_ranks_end.
"""

import json
import os
import pathlib
import signal
import sys
import time

from spark_supplier import Supplier

from supplier_session import made_session, processes_of_tests

LIMIT_SECONDS = 60
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


def of_rank(data):
    return os.getpid(), sum(len(batch["id"]) for batch in data)


def executors():
    """The processes of this session's executors, which are grandchildren of the driver's JVM."""
    return [int(each.name) for each in processes_of_tests() if EXECUTOR in (each / "cmdline").read_bytes().split(b"\0")]


def is_there(process):
    end = time.monotonic() + LIMIT_SECONDS
    while pathlib.Path(f"/proc/{process}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    return pathlib.Path(f"/proc/{process}").exists()


def main():
    with Supplier(1, folder=sys.argv[1], backend=None) as supplier:

        def run():
            return supplier.run(of_rank, spark.range(0, 100, 1, 2))

        with made_session("local-cluster[1,2,1024]") as spark:
            found = {"first": run(), "second": run()}
            (executor,) = executors()
            os.kill(executor, signal.SIGKILL)
            # A call that begins before they have gone loses its ranks in the middle.
            is_there(found["second"][0])
            found["after the executor"] = run()
        found["with the session"] = is_there(found["after the executor"][0])
        with made_session("local[2]") as spark:
            found["in another session"] = run()
    found["left"] = [path for path in os.listdir(sys.argv[1]) if path.startswith("supply-")]
    # Without the end of a block, as in a notebook.
    with made_session("local[2]") as spark:
        supplier = Supplier(1, folder=sys.argv[1], backend=None)
        supplier.__enter__()
        found["of the driver"] = run()
        print(json.dumps(found), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
