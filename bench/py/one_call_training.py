"""What a rank of bench/one_call does: it reads every value of every batch, in the same way for each alternative.

A train function returns one answer for each rank: the times of its first batch and of the end of each epoch, by the
clock that the driver reads too, and the sums of each epoch.
"""

import glob
import os
import time
import warnings

import torch
from torch import distributed

COLUMNS = ["features", "label"]
BATCH = 64
# About Arrow's memory. Nobody writes to it.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")


class Reading:
    """Reads epoch after epoch."""

    def __init__(self):
        torch.set_num_threads(1)
        self.first = None
        self.ends = []
        self.tallies = []

    def epoch(self, batches):
        """batches: pairs of a tensor for each column."""
        sums, samples = [[], []], 0
        for batch in batches:
            if self.first is None:
                self.first = time.time()
            samples += len(batch[0])
            for of_column, values in zip(sums, batch):
                of_column.append(values.sum(dtype=torch.float64))
            del batch, values
        self.ends.append(time.time())
        features, label = (int(torch.stack(of_column).sum()) for of_column in sums)
        self.tallies.append({"samples": samples, "features": features, "label": label})

    def answers(self):
        """Those of all ranks, on rank 0."""
        if not distributed.is_initialized():
            distributed.init_process_group("gloo")
        mine = {"first": self.first, "ends": self.ends, "tallies": self.tallies}
        answers = [None] * distributed.get_world_size()
        distributed.all_gather_object(answers, mine)
        # A rank of torchrun that ends with the group may abort when another one has ended.
        distributed.destroy_process_group()
        return answers


def train_supplied(data):
    """For Supplier.run()."""
    reading = Reading()
    for epoch in data.epochs():
        reading.epoch([batch[name] for name in COLUMNS] for batch in epoch)
    return reading.answers()


def train_partition(epochs, samples):
    """For TorchDistributor._train_on_dataframe(). samples: of this rank."""
    from pyspark.ml.torch.distributor import _get_spark_partition_data_loader

    reading = Reading()
    loader = _get_spark_partition_data_loader(samples, BATCH)
    for _ in range(epochs):
        reading.epoch(loader)
    return reading.answers()


def train_parquet(epochs, folder):
    """For TorchDistributor.run(). Each rank reads its share of the row groups."""
    reading = Reading()
    for _ in range(epochs):
        reading.epoch(_parquet_batches(folder))
    return reading.answers()


def _parquet_batches(folder):
    import pyarrow.parquet

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    files = [pyarrow.parquet.ParquetFile(path) for path in sorted(glob.glob(f"{folder}/*.parquet"))]
    groups = [(file, number) for file in files for number in range(file.num_row_groups)]
    for file, number in groups[rank::ranks]:
        rows = file.read_row_group(number, columns=COLUMNS)
        label = torch.from_numpy(rows["label"].combine_chunks().to_numpy(zero_copy_only=False))
        features = torch.from_numpy(rows["features"].combine_chunks().flatten().to_numpy()).view(len(label), -1)
        for begin in range(0, len(label), BATCH):
            yield features[begin : begin + BATCH], label[begin : begin + BATCH]
