"""A rank whose pairs feeders open, if there are any. It writes what happened into a file of its folder.

Arguments: folder, what to do, and for some of it a value.
"""

import json
import pathlib
import signal
import sys
from typing import Any

import pyarrow
import pytest
import spark_supplier
from mpi4py import MPI

from exchanging import epochs_of
from task import wait_until

folder, action, *values = sys.argv[1:]


def read(s):
    with s:
        return epochs_of(s)


def exchange():
    with spark_supplier.ranks.open(
        feeders=MPI.COMM_WORLD, exchange=spark_supplier.ranks.Exchange("all", window=2048)
    ) as s:
        return epochs_of(s)


def compare(s):
    """The ids of each epoch, whose rows are those of a file."""
    received = read(s)
    with pyarrow.OSFile(str(pathlib.Path(folder, "rows.arrow"))) as file:
        expected = {row["id"]: row for row in pyarrow.ipc.open_file(file).read_all().to_pylist()}
    assert all(row == expected[row["id"]] for rows in received for row in rows)
    return [[row["id"] for row in rows] for rows in received]


def fail(s):
    """The failure of reading."""
    with pytest.raises(spark_supplier.SupplyError) as raised:
        read(s)
    return type(raised.value).__name__, str(raised.value)


def fail_to_open(exchange=None):
    with pytest.raises(spark_supplier.SupplyError) as raised:
        spark_supplier.ranks.open(feeders=MPI.COMM_WORLD, exchange=exchange)
    return type(raised.value).__name__, str(raised.value)


def results(s):
    with s:
        with pytest.raises(spark_supplier.SupplyError) as raised:
            s.results("numbers", "id long not null")
        return str(raised.value), epochs_of(s)


def interrupt(s):
    """A signal ends a wait, and the pair stays open."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with s:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            s.next_block()
        pathlib.Path(folder, "interrupted").touch()
        return epochs_of(s)


def open_alone():
    """Only rank 0 opens its pair."""
    failed = pathlib.Path(folder, "0.json")
    if MPI.COMM_WORLD.rank:
        wait_until("the failure of rank 0", failed.exists)
        MPI.COMM_WORLD.Abort(5)
    return fail_to_open()


def dataset_of_several_pairs():
    """The ids of each epoch. There is a state at the end of an epoch, and none inside."""
    from spark_supplier.torch import Dataset

    found: list[list[int]] = []
    with Dataset(feeders=MPI.COMM_WORLD, columns=["id"], batch_size=8) as data:
        for epoch in data.epochs():
            found.append([])
            for number, batch in enumerate(epoch):
                found[-1] += batch["id"].tolist()
                if number == 0:
                    with pytest.raises(spark_supplier.SupplyError, match="more feeders than ranks"):
                        data.state_dict()
            assert data.state_dict()["position"].startswith(f"position-1:{len(found)}:0:")
    return found


def dataset(workers):
    from spark_supplier.torch import DataLoader, Dataset

    with Dataset(feeders=MPI.COMM_WORLD, columns=["id", "point"], batch_size=8) as data:
        ranks = data.comm.allgather(data.comm.rank)
        epochs = [
            [number for batch in DataLoader(epoch, num_workers=int(workers)) for number in batch["id"].tolist()]
            for epoch in data.epochs()
        ]
        assert data.state_dict()["position"].startswith("position-1:2:0:"), data.state_dict()
        return ranks, epochs


def dataset_on_device():
    """The ids of each epoch, whose points are right and on the device."""
    from spark_supplier.torch import Dataset

    with Dataset(feeders=MPI.COMM_WORLD, columns=["id", "point"], batch_size=8).to("cuda") as data:
        epochs: list[list[int]] = []
        for epoch in data.epochs():
            epochs.append([])
            for batch in epoch:
                assert batch["point"].is_cuda and (batch["point"][:, 0] == batch["id"] / 2).all()
                epochs[-1] += batch["id"].tolist()
        return epochs


# These open the pair themselves.
without_pair: dict[str, Any] = {
    "dataset": dataset,
    "dataset_on_device": dataset_on_device,
    "dataset_of_several_pairs": dataset_of_several_pairs,
    "exchange": exchange,
    "fail_to_open": fail_to_open,
    "open_alone": open_alone,
}
if action in without_pair:
    outcome: Any = without_pair[action](*values)
else:
    opened = spark_supplier.ranks.open(feeders=MPI.COMM_WORLD)
    # The feeders come first in the communicator.
    assert MPI.COMM_WORLD.rank - opened.comm.rank == MPI.COMM_WORLD.size - opened.comm.size
    outcome = globals()[action](opened)
    assert opened.closed
pathlib.Path(folder, f"{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(outcome))
if action == "fail" and "is it stopped" in outcome[1]:
    # The end of MPI would wait for the feeder.
    MPI.COMM_WORLD.Abort(6)
