"""A rank that writes the ids of its elements into a file, a line for each block: EPOCH ID ID …

Arguments: the file's folder, and as JSON the options of ranks.open(), among them `exchange` as a list of options of
Exchange. With mpi, the ranks are those of MPI.
"""

import json
import os
import pathlib
import sys

import spark_supplier

folder, options = sys.argv[1], json.loads(sys.argv[2])
number = os.environ["OMPI_COMM_WORLD_RANK"]
if options.pop("mpi", False):
    from mpi4py import MPI  # noqa: F401
if "exchange" in options:
    options["exchange"] = spark_supplier.ranks.Exchange(**options["exchange"])
pathlib.Path(folder, f"{number}.pid").write_text(str(os.getpid()))
with spark_supplier.ranks.open(**options) as s, open(f"{folder}/{number}.ids", "w", buffering=1) as out:
    while not s.at_end_of_data:
        for block in s.epoch():
            out.write(" ".join(map(str, [block.epoch, *block.numpy("id").tolist()])) + "\n")
            del block
