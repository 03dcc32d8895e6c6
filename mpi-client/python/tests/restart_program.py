"""A run whose executor is killed: `restart_program.py FOLDER`. For test_restarts."""

import collections
import json
import os
import pathlib
import signal
import sys
import tempfile

from spark_supplier import Rows, Supplier

from supplier_session import made_session

ROWS = 96


def executor():
    """The JVM from which this rank descends."""
    process = os.getpid()
    while pathlib.Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


def seen(data):
    found = list(data.saved or [])
    for batch in data:
        found += [int(row) for row in batch["id"]]
        data.save(found)
        if data.restarts == 0 and len(found) == ROWS // 4:
            os.kill(executor(), signal.SIGKILL)
    return found, data.restarts, data.last_failure


def main(folder):
    with made_session("local-cluster[1,2,1024]") as spark, tempfile.TemporaryDirectory() as checkpoints:
        found, restarts, failure = Supplier(
            ranks=1, restarts=1, folder=folder, checkpoints=f"file://{checkpoints}"
        ).run(seen, Rows(spark.range(0, ROWS, 1, 4), batch_size=8, uneven="keep"))
    counts = collections.Counter(found)
    print(json.dumps({"once": sorted(counts.elements()) == list(range(ROWS)), "restarts": restarts, "why": failure}))


if __name__ == "__main__":
    main(sys.argv[1])
