"""What ranks of a call see, also in a session of its own: `seen.py connect|dynamic MEMORY CHECKPOINTS RESTARTS`."""

import json
import os
import sys

from pyspark import cloudpickle

# Ranks do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
RANKS, COUNT, BATCH, EPOCHS = 2, 4_000, 16, 2
MASTER = "local-cluster[2,3,1024]"
SETTINGS = {
    "spark.ui.enabled": "false", "spark.log.level": "OFF",
    "spark.network.timeout": "20s", "spark.network.timeoutInterval": "1s", "spark.executor.heartbeatInterval": "2s",
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
}  # fmt: skip


def rows(session):
    """With a struct, a text and a list, which are made of the id."""
    return session.range(0, COUNT, 1, 8).selectExpr(
        "id", "named_struct('twice', id * 2, 'name', string(id)) AS pair", "sequence(id, id + id % 3) AS list"
    )


def call_with_checkpoints(session, memory, checkpoints, restarts):
    from spark_supplier import Checkpoints, Rows, Supplier

    supplier = Supplier(
        RANKS, restarts=restarts, folder=str(memory), stall_timeout=60, checkpoints=Checkpoints(checkpoints, every=0.5)
    )
    return supplier.run(see, Rows(rows(session), batch_size=BATCH, epochs=EPOCHS, uneven="keep"))


def see(data):
    """A number for each row of each epoch, of all ranks, which have equally many."""
    found = data.saved or []
    for epoch in data.epochs():
        for batch in epoch:
            found += _see_batch(epoch.number, batch)
            data.save(found)
    return _of_all_ranks(found)


def see_without_checkpoints(data):
    return _of_all_ranks([number for batch in data for number in _see_batch(0, batch)])


def _see_batch(epoch, batch):
    import time

    _check(batch)
    # The run lasts for longer than the processes take to start.
    time.sleep(0.05)
    return (epoch * COUNT + batch["id"]).tolist()


def _of_all_ranks(found):
    import torch
    from torch import distributed

    own = torch.tensor(found)
    shares = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(shares, own)
    return torch.cat(shares).tolist()


def _check(batch):
    """That the other columns are those of the ids."""
    ids, pair, lists = batch["id"].tolist(), batch["pair"], batch["list"]
    bounds = lists.offsets.tolist()
    assert pair["twice"].tolist() == [2 * number for number in ids]
    assert pair["name"] == [str(number) for number in ids]
    assert [lists.values[begin:end].tolist() for begin, end in zip(bounds, bounds[1:])] == [
        list(range(number, number + number % 3 + 1)) for number in ids
    ]


if __name__ == "__main__":
    from supplier_session import made_session

    # Of this environment, and not that of the soak.
    os.environ.pop("SPARK_HOME", None)
    _, kind, memory, checkpoints, restarts = sys.argv
    is_of_connect = kind == "connect"
    settings = {name: value for name, value in SETTINGS.items() if not (is_of_connect and "dynamic" in name)}
    with made_session(MASTER, settings, is_of_connect) as session:
        print(json.dumps(call_with_checkpoints(session, memory, checkpoints, int(restarts))))
