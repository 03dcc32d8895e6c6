"""A rank of several processes: `exchange_rank.py mpi|torch FOLDER exchange POLICY SIZES ALONE`, `… missing END`.

It feeds its own pair, and writes the rows of its epochs into a file of the folder. SIZES: elements of the blocks of
each rank; ALONE: the rank that has no neighbours. With `missing` only rank 0 opens its exchange at first, and its wait
must end by END: a signal, or the limit. `… overlap`: rank 1 computes until rank 0 has its second block. `… forget`: the
interpreter ends in the middle of the data. `… finalize WHEN`: MPI ends before the exchange.
"""

import importlib
import json
import os
import pathlib
import signal
import sys

import pytest
import spark_supplier
from spark_supplier.exchange import transport_over

from exchanging import epochs_of, feeding, make_files, rows_of
from task import HANG_SECONDS, wait_until

EPOCHS = 2

over, name, action, *arguments = sys.argv[1:]
folder = pathlib.Path(name)
if over == "mpi":
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
else:
    import torch.distributed

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)


def parts_of(transport):
    """A list that gets the transports which it splits off."""
    made, split = [], transport.split

    def splitting(self, ranks):
        made.append(split(self, ranks))
        return made[-1]

    transport.split = splitting
    return made


def exchange(policy, sizes, alone):
    module, name = ("mpi", "MpiTransport") if over == "mpi" else ("torch_transport", "TorchTransport")
    parts = parts_of(getattr(importlib.import_module(f"spark_supplier.{module}"), name))
    files = make_files(folder, rank)
    given = spark_supplier.ranks.Exchange(
        policy, column="user" if policy == "hash" else None, window=2048, messages_only=rank == int(alone)
    )
    with spark_supplier.ranks.open(files.folder, 0, rank=rank, timeout=60, exchange=given) as s:
        task = feeding(files, rank, json.loads(sizes)[rank], EPOCHS)
        received = epochs_of(s)
    task.join()
    (folder / f"{rank}.rail").write_text(" ".join(str(part.ranks) for part in parts))
    (folder / f"{rank}.json").write_text(json.dumps(received))
    assert files.remaining() == []


def opened(files):
    given = spark_supplier.ranks.Exchange("all", window=512)
    return spark_supplier.ranks.open(files.folder, 0, rank=rank, timeout=60, exchange=given)


def overlap():
    files = make_files(folder, rank)
    received = []
    with opened(files) as s:
        task = feeding(files, rank, [40, 40])
        for number, block in enumerate(s.epoch()):
            received += rows_of(block)
            if (number, rank) == (0, 1):
                wait_until("the second block of rank 0", (folder / "second").exists)
            elif (number, rank) == (1, 0):
                (folder / "second").touch()
        assert epochs_of(s) == []
    task.join()
    (folder / f"{rank}.json").write_text(json.dumps([received]))


# What the program leaves open.
forgotten: list[spark_supplier.pair.Reader] = []


def forget():
    files = make_files(folder, rank)
    forgotten.append(opened(files))
    feeding(files, rank, [40, 40])
    next(forgotten[0].epoch())
    (folder / f"begun-{rank}").touch()
    wait_until("the other rank", (folder / f"begun-{1 - rank}").exists)


def finalize(when):
    files = make_files(folder, rank)
    s = opened(files)
    feeding(files, rank, [40, 40])
    blocks = s.epoch()
    if when == "inside":
        next(blocks)
        (folder / f"begun-{rank}").touch()
        wait_until("the other rank", (folder / f"begun-{1 - rank}").exists)
    elif when == "after":
        assert len(epochs_of(s)) == 1
    MPI.Finalize()
    if when != "after":
        with pytest.raises(spark_supplier.SupplyError, match=r"has called MPI.Finalize\(\) while it has blocks"):
            list(blocks)
    s.close()
    (folder / f"{rank}.ended").touch()


def missing(end):
    if rank:
        wait_until("the failure of rank 0", (folder / "failed").exists)
    elif end == "signal":
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            transport_over(timeout=HANG_SECONDS)
    else:
        with pytest.raises(spark_supplier.SupplyTimeoutError, match="another rank has not opened its exchange for 1 s"):
            transport_over(timeout=0.5)
    (folder / "failed").touch()
    if over == "mpi":
        # MPI cannot take back a collective operation, and ends only after all ranks have completed it.
        if rank == 0:
            ((_, pending),) = spark_supplier.mpi._kept
            pending.Wait()
        else:
            transport_over(timeout=HANG_SECONDS)


globals()[action](*arguments)
