"""A rank in Python that takes every column of every block, as bench-blocks does in C.

Epoch 0 is verified. Then each line of stdin is the number of blocks of one measurement.
"""

import json
import sys
import time

import spark_supplier
import torch
from spark_supplier.torch import Dataset

COLUMNS = ["features", "label"]
# Eight columns. The numbers of the seven are those of `features`, which has 112 times as many.
SINGLE = [f"x{i}" for i in range(7)]
FEATURES_OF_SINGLE = 112
BATCH = 64


class Blocks:
    """Arrays over each block. `take` is the method of a block that makes them."""

    def __init__(self, local_rank, take):
        self.supply = spark_supplier.ranks.open(local_rank=local_rank)
        self.take = take
        self.close = self.supply.close

    def epochs(self):
        while not self.supply.at_end_of_data:
            yield self.supply.epoch()

    def arrays(self, block):
        return [self.take(block, name) for name in COLUMNS]

    def seconds_waited(self):
        return self.supply.statistics.seconds_waited


class Batches:
    """Batches of the size of a block."""

    def __init__(self, local_rank, columns=COLUMNS, **options):
        self.columns = columns
        self.dataset = Dataset(local_rank=local_rank, columns=columns, batch_size=BATCH, **options)
        self.epochs = self.dataset.epochs
        self.close = self.dataset.close

    def arrays(self, batch):
        return [batch[name] for name in self.columns]

    def seconds_waited(self):
        return self.dataset._supply.statistics.seconds_waited


WAYS = {
    "torch": lambda local_rank: Blocks(local_rank, spark_supplier.ranks.Block.torch),
    "numpy": lambda local_rank: Blocks(local_rank, spark_supplier.ranks.Block.numpy),
    "batches": Batches,
    "zero_copy": lambda local_rank: Batches(local_rank, zero_copy=True),
    "columns": lambda local_rank: Batches(local_rank, [*SINGLE, "label"], zero_copy=True),
}


def verify(way, epoch):
    """Returns the sums of an epoch."""
    samples = features = labels = 0
    for block in epoch:
        *values, label = way.arrays(block)
        samples += len(label)
        features += sum(int(array.sum()) for array in values) * (1 if len(values) == 1 else FEATURES_OF_SINGLE)
        labels += int(label.sum())
        del block, values, label
    return {"samples": samples, "features": features, "label": labels}


def arrays_of(way, epochs):
    """The arrays of all blocks, without holding any of them."""
    for epoch in epochs:
        for block in epoch:
            way.arrays(block)
            del block
            yield


def measure(way, taken, count):
    waited, start, cpu_start = way.seconds_waited(), time.monotonic_ns(), time.process_time_ns()
    for _ in range(count):
        next(taken)
    nanos, cpu_nanos = time.monotonic_ns() - start, time.process_time_ns() - cpu_start
    return {"blocks": count, "nanos": nanos, "cpu_nanos": cpu_nanos, "waited": way.seconds_waited() - waited}


def main():
    local_rank, name = sys.argv[1:]
    torch.set_num_threads(1)
    way = WAYS[name](int(local_rank))
    epochs = way.epochs()
    print(json.dumps(verify(way, next(epochs))), flush=True)
    taken = arrays_of(way, epochs)
    for line in sys.stdin:
        print(json.dumps(measure(way, taken, int(line))), flush=True)
    for _ in taken:
        pass
    way.close()


if __name__ == "__main__":
    main()
