"""A call starts its ranks again from their checkpoints, whatever is killed, and each row of each epoch comes once."""

import collections
import sys

from pyspark import cloudpickle

from soak.ground import RANKS, TIMEOUT
from soak.kills import kills

# Ranks do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
COUNT, BATCH, EPOCHS = 4_000, 16, 2
_MOST_KILLS, _LATEST_SECONDS = 5, 10


def whatever_is_killed(ground):
    from supply.spark import Supplier

    rows = ground.cluster.session.range(0, COUNT, 1, 8)
    count = ground.chance.randint(1, _MOST_KILLS)
    # An executor that is killed may end two attempts: that in which it dies, and one that was placed on it.
    supplier = Supplier(ranks=RANKS, max_restarts=2 * count, folder=str(ground.memory))
    with kills(ground, count, _LATEST_SECONDS):
        found = supplier.run(
            _see, rows, batch_size=BATCH, epochs=EPOCHS, uneven="keep", stall_timeout=TIMEOUT,
            checkpoint_folder=ground.folder / "checkpoints", checkpoint_every=0.5,
        )  # fmt: skip
    received = collections.Counter(found)
    ground.tally.elements += received.total()
    ground.tally.lost += EPOCHS * COUNT - len(received)
    ground.tally.duplicated += received.total() - len(received)


def _see(data):
    """A number for each row of each epoch, of all ranks, which have equally many."""
    import time

    import torch
    from torch import distributed

    found = data.checkpoint() or []
    for epoch in data.epochs():
        for batch in epoch:
            found += (epoch.number * COUNT + batch["id"]).tolist()
            # The run lasts for longer than the processes take to start.
            time.sleep(0.05)
            data.checkpoint(found)
    own = torch.tensor(found)
    shares = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(shares, own)
    return torch.cat(shares).tolist()
