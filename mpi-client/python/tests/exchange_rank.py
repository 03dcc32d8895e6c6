"""A rank of several processes. It feeds its own pair, and writes the rows of its epochs into a file.

Arguments: mpi or torch, policy, elements of the blocks of each rank, the rank that has no neighbours, folder with the
files of the ranks.
"""

import json
import os
import pathlib
import sys

import spark_supplier

from exchanging import epochs_of, feeding, make_files

EPOCHS = 2

over, policy, sizes, alone, folder = sys.argv[1:]
if over == "mpi":
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
else:
    import torch.distributed

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
files = make_files(pathlib.Path(folder), rank)
exchange = spark_supplier.ranks.Exchange(
    policy,  # type: ignore[arg-type]
    column="user" if policy == "hash" else None,
    window=2048,
    messages_only=rank == int(alone),
)
with spark_supplier.ranks.open(files.folder, 0, rank=rank, timeout=60, exchange=exchange) as s:
    task = feeding(files, rank, json.loads(sizes)[rank], EPOCHS)
    received = epochs_of(s)
task.join()
pathlib.Path(folder, f"{rank}.json").write_text(json.dumps(received))
assert files.remaining() == []
