"""A client of a server of Spark Connect: `turns_program.py REMOTE FOLDER MODE`. For test_connect_turns.

MODE "gate": one run, whose rank waits for the file FOLDER.open. "warm": a run whose rank stays, until the file
FOLDER.open is there, then another one. It prints lines, which say how far it is.
"""

import contextlib
import os
import pathlib
import sys
import time

import spark_supplier
from spark_supplier import Supplier


def opens(gate):
    """For ranks, which cannot import this module."""

    def waits(data):
        import pathlib
        import time

        print("runs", flush=True)
        while gate and not pathlib.Path(gate).exists():
            time.sleep(0.05)
        return os.getpid()

    return waits


def main():
    remote, folder, mode = sys.argv[1:]
    gate = f"{folder}.open"
    spark = spark_supplier.session(remote=remote)
    df = spark.range(0, 20, 1, 2)
    made = Supplier(1, folder=folder, backend=None)
    with made if mode == "warm" else contextlib.nullcontext(made) as supplier:
        first = supplier.run(opens(gate if mode == "gate" else None), df)
        print("first", flush=True)
        if mode == "warm":
            while not pathlib.Path(gate).exists():
                time.sleep(0.05)
            print("same" if supplier.run(opens(None), df) == first else "others", flush=True)
    print("end", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
