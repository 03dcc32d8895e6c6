"""What a rank of bench/one_call does: it reads every value of every batch, in the same way for each loader.

A train function returns one answer for each rank: the times of its first batch and of the end of each epoch, by the
clock that the driver reads too, the sums of each epoch, and what it waited for batches.
"""

import glob
import json
import os
import resource
import time
import warnings

import torch
from torch import distributed, nn

COLUMNS = ["features", "label"]
BATCH, CLASSES, SIDE = 64, 10, 28
# About Arrow's memory. Nobody writes to it.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")


class Transformer(nn.Module):
    """The lines of a picture are its tokens."""

    def __init__(self, width=64):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.layers = nn.Sequential(nn.Linear(SIDE, width), nn.TransformerEncoder(layer, 2))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, features):
        return self.head(self.layers(features.view(-1, SIDE, SIDE)).mean(1))


def table_model():
    return nn.Sequential(nn.Linear(SIDE**2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES))


# What a step trains, beside the sums.
MODELS = {"sum": None, "table": table_model, "transformer": Transformer}


class Reading:
    """Reads epoch after epoch."""

    def __init__(self, step):
        torch.set_num_threads(1)
        self.model = MODELS[step] and MODELS[step]()
        self.optimizer = self.model and torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.start, self.first, self.waited = time.time(), None, 0
        self.ends, self.tallies = [], []

    def waiting(self, start):
        """What start() yields. To start it, and to get each item, counts as waiting."""
        asked = time.time()
        items = iter(start())
        while True:
            item = next(items, None)
            self.waited += time.time() - asked
            if item is None:
                return
            yield item
            # A batch must not be held while the next one is awaited.
            del item
            asked = time.time()

    def epoch(self, batches):
        """batches(): pairs of a tensor for each column."""
        # A list of small tensors between the batches would keep malloc from using their memory again.
        sums, samples = torch.zeros(len(COLUMNS), dtype=torch.float64), 0
        for batch in self.waiting(batches):
            self.first = self.first or time.time()
            samples += len(batch[0])
            for number, values in enumerate(batch):
                sums[number] += values.sum(dtype=torch.float64)
            if self.model:
                self.train(*batch)
            del batch, values
        self.ends.append(time.time())
        features, label = map(int, sums)
        self.tallies.append({"samples": samples, "features": features, "label": label})

    def train(self, features, label):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(features / 65536), label % CLASSES).backward()
        self.optimizer.step()

    def answers(self):
        """Those of all ranks, on rank 0."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        mine = {key: getattr(self, key) for key in ("start", "first", "ends", "tallies", "waited")}
        mine["processor"] = sum(one.ru_utime + one.ru_stime for one in used)
        meet()
        answers = [None] * distributed.get_world_size()
        distributed.all_gather_object(answers, mine)
        # A rank of torchrun that ends with the group may abort when another one has ended.
        distributed.destroy_process_group()
        return answers


def meet():
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")


def train_supplied(data, step):
    """For Supplier.run()."""
    reading = Reading(step)
    for epoch in reading.waiting(data.epochs):
        reading.epoch(lambda epoch=epoch: ([batch[name] for name in COLUMNS] for batch in epoch))
    return reading.answers()


def train_partition(epochs, samples):
    """For TorchDistributor._train_on_dataframe(). samples: of this rank."""
    from pyspark.ml.torch.distributor import _get_spark_partition_data_loader

    reading = Reading("sum")
    loader = _get_spark_partition_data_loader(samples, BATCH)
    for _ in range(epochs):
        reading.epoch(lambda: loader)
    return reading.answers()


def train_files(reader, epochs, source, step):
    """For TorchDistributor.run(). source: what the driver has prepared for the reader."""
    meet()
    reading = Reading(step)
    batches = READERS[reader](source)
    for _ in range(epochs):
        reading.epoch(batches)
    del batches  # Its workers end, and their time counts.
    return reading.answers()


def train_ray(what):
    """For Ray's TorchTrainer."""
    from ray import train

    reading = Reading(what["step"])
    data, how = train.get_dataset_shard("train"), {"batch_size": BATCH, "prefetch_batches": 4}
    for _ in range(what["epochs"]):
        reading.epoch(lambda: ([batch[name] for name in COLUMNS] for batch in data.iter_torch_batches(**how)))
    answers = reading.answers()
    if train.get_context().get_world_rank() == 0:
        with open(what["answers"], "w", encoding="utf-8") as file:
            json.dump(answers, file)


def row_groups(folder):
    """The row groups of this rank, as pairs of tensors."""
    import pyarrow.parquet

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    files = [pyarrow.parquet.ParquetFile(path) for path in sorted(glob.glob(f"{folder}/*.parquet"))]
    groups = [(file, number) for file in files for number in range(file.num_row_groups)]
    for file, number in groups[rank::ranks]:
        rows = file.read_row_group(number, columns=COLUMNS)
        label = torch.from_numpy(rows["label"].combine_chunks().to_numpy(zero_copy_only=False))
        yield torch.from_numpy(rows["features"].combine_chunks().flatten().to_numpy()).view(len(label), -1), label


class RowGroups(torch.utils.data.IterableDataset):
    def __init__(self, folder):
        self.folder = folder

    def __iter__(self):
        return row_groups(self.folder)


def cut(groups):
    for features, label in groups:
        for begin in range(0, len(label), BATCH):
            yield features[begin : begin + BATCH], label[begin : begin + BATCH]


def by_hand(folder):
    return lambda: cut(row_groups(folder))


def by_dataloader(folder):
    # A worker gives whole row groups: a batch of 64 costs it more than its bytes.
    loader = torch.utils.data.DataLoader(RowGroups(folder), batch_size=None, num_workers=1, persistent_workers=True)
    return lambda: cut(loader)


def by_litdata(folder):
    import litdata

    dataset = litdata.StreamingDataset(folder, drop_last=False)
    loader = litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=1, persistent_workers=True)
    return lambda: ([batch[name] for name in COLUMNS] for batch in loader)


def by_mosaic(folder):
    import streaming

    # TorchDistributor gives each rank a torchrun of its own, and Mosaic's ranks of one node share memory.
    os.environ |= {"LOCAL_RANK": os.environ["RANK"], "LOCAL_WORLD_SIZE": os.environ["WORLD_SIZE"]}
    dataset = streaming.StreamingDataset(local=folder, batch_size=BATCH)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=1, persistent_workers=True)
    return lambda: ([batch[name] for name in COLUMNS] for batch in loader)


def by_datasets(data):
    from datasets.distributed import split_dataset_by_node

    mine = split_dataset_by_node(data, distributed.get_rank(), distributed.get_world_size()).with_format("torch")
    return lambda: ([batch[name] for name in COLUMNS] for batch in mine.iter(batch_size=BATCH))


READERS = {
    "hand": by_hand,
    "dataloader": by_dataloader,
    "litdata": by_litdata,
    "mosaic": by_mosaic,
    "datasets": by_datasets,
}
