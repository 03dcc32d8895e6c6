"""A program of ranks that something else starts, without PySpark: connected_rank.py WHAT FOLDER.

It writes its rows to the file FOLDER/RANK.
"""

import json
import os
import pathlib
import sys

import spark_supplier
import torch

sys.modules["pyspark"] = None  # type: ignore[assignment]

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WHAT, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def ids(batches):
    return [number for batch in batches for number in batch["id"].tolist()]


def note(**had):
    path = FOLDER / f"{RANK}"
    path.write_text(json.dumps([*(json.loads(path.read_text()) if path.exists() else []), had]))


def read():
    with spark_supplier.connect() as data:
        note(epochs=[ids(epoch) for epoch in data.epochs()], rows=sum(row.rows for row in data.statistics()))


def read_without_close():
    data = spark_supplier.connect(batch_size=7)
    note(epochs=[ids(epoch) for epoch in data.epochs()])


def read_both():
    with spark_supplier.connect() as data:
        assert data.validation is not None
        had = [ids(epoch) for epoch in data.epochs()]
        note(epochs=had, validation=[ids(epoch) for epoch in data.validation.epochs()])


def read_one_batch():
    with spark_supplier.connect() as data:
        note(first=next(iter(data))["id"].tolist())


def predict():
    with spark_supplier.connect() as data, data.results() as out:
        for epoch in data.epochs():
            for batch in epoch:
                out.write({"id": batch["id"], "score": batch["id"].double() / 2})


def save():
    """In the first attempt rank 0 ends in its second epoch, after it has saved the first."""
    with spark_supplier.connect() as data:
        note(saved=data.saved, restarts=data.restarts)
        for number, epoch in enumerate(data.epochs(), data.saved or 0):
            had = ids(epoch)
            if data.restarts == 0 and number == 1 and RANK == 0:
                os._exit(7)
            note(attempt=data.restarts, epoch=number, ids=had)
            data.save(number + 1)


def fail():
    with spark_supplier.connect() as data:
        next(iter(data))
        raise ValueError(f"the loss of rank {RANK} is nan")


def end():
    spark_supplier.connect()
    os._exit(3)


def exchange():
    torch.distributed.init_process_group("gloo", init_method=f"file://{FOLDER}/meet", rank=RANK, world_size=RANKS)
    with spark_supplier.connect() as data:
        note(epochs=[ids(epoch) for epoch in data.epochs()])
    torch.distributed.destroy_process_group()


globals()[WHAT]()
