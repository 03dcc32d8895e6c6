"""The Supplier's --in-place: a rank gets the same values as of a run that copies, from the LMDB itself."""

import os

import numpy
import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier.torch import DataLoader, Dataset, Jagged

from layout import ROOT
from spark_program import LIMIT_SECONDS, SparkProgram
from values import lies_in_mapping


class Spark(SparkProgram):
    """The Supplier, for this process as its rank. It answers with the error, or None."""

    def __init__(self, folder, log):
        path = os.pathsep.join(str(ROOT / part) for part in ("launch/tests", "build/python"))
        super().__init__(log, "lmdb_supplier.py", folder, PYTHONPATH=path)
        self.folder = folder

    def supply(self, files, name, *options):
        words = [
            "--lmdb", self.folder / name, "--mapped-files", files.folder / "mapped-files.conf",
            "--named-pipes", files.folder / "named-pipes.conf", "--ranks", 1, "--timeout", LIMIT_SECONDS, *options,
        ]  # fmt: skip
        self.send(list(map(str, words)))


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    with open(folder / "log", "w") as log:
        started = Spark(folder, log)
        yield started
        started.end()


@pytest.fixture
def open_supply(files, spark):
    """A function that supplies an LMDB and opens the rank's side, with eight slots of 1 MiB."""

    def opened(opens, name, *options, **arguments):
        spark.supply(files, name, *options)
        return opens(files.folder, 0, ring=8 << 20, block=1 << 20, timeout=LIMIT_SECONDS, **arguments)

    return opened


# Options of a run that copies, and of one in place.
RUNS = [(), ("--in-place",)]


@pytest.mark.parametrize("name, elements", [("images", 20), ("digits", 300), ("encoded", 60)])
def test_every_value_arrives_as_in_a_copied_run(open_supply, spark, name, elements):
    read = []
    for options in RUNS:
        rows = []
        with open_supply(spark_supplier.ranks.open, name, "--epochs", "2", *options) as s:
            for block in s:
                expected = [value.as_py() for value in pyarrow.record_batch(block).column("data")]
                assert [bytes(view) for view in block.views("data")] == expected
                rows += pyarrow.record_batch(block).to_pylist()
        assert spark.answer() is None
        read.append(rows)
    copied, in_place = read
    assert copied == in_place and len(copied) == 2 * elements


def test_large_images_are_one_array_over_the_lmdb(open_supply, spark):
    with open_supply(spark_supplier.ranks.open, "images", "--in-place") as s:
        counts = []
        for block in s:
            counts.append(len(block))
            images, tensors = block.numpy("data"), block.torch("data")
            assert images.shape == (len(block), 3, 256, 256) and not images.flags.owndata
            assert tensors.data_ptr() == images.ctypes.data and tensors.stride() == images.strides
            assert not lies_in_mapping(s, images.ctypes.data, 1)
            assert numpy.array_equal(images, block.numpy("data", copy=True))
            del images, tensors, block
    assert spark.answer() is None and sum(counts) == 20


def test_small_values_need_a_copy(open_supply, spark):
    with open_supply(spark_supplier.ranks.open, "digits", "--in-place") as s:
        for block in s:
            with pytest.raises(spark_supplier.ColumnError, match="equal distances.*copy=True"):
                block.numpy("data")
            digits = block.numpy("data", copy=True)
            assert digits.shape == (len(block), 1, 28, 28)
            assert [digit.tobytes() for digit in digits] == [bytes(view) for view in block.views("data")]
            del block
    assert spark.answer() is None


def trained(dataset, workers):
    """The weights of a model after two epochs."""
    weights = torch.zeros(10, 784)
    losses = []
    for epoch in dataset.epochs():
        for batch in DataLoader(epoch, num_workers=workers):
            inputs = batch["data"].flatten(1).float() / 255
            weights.requires_grad_()
            loss = torch.nn.functional.cross_entropy(inputs @ weights.T, batch["label"])
            [gradient] = torch.autograd.grad(loss, weights)
            weights = (weights - 0.1 * gradient).detach()
            losses.append(loss.item())
            del batch
    return weights, losses


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("zero_copy", [False, True])
def test_training_is_the_same_as_in_a_copied_run(open_supply, spark, zero_copy, workers):
    options = ("--epochs", "2", "--shuffle", "rows", "--seed", "5", "--block-elements", "48")
    results = []
    for run in RUNS:
        dataset = open_supply(
            Dataset, "digits", *options, *run, columns=["data", "label"], batch_size=32, zero_copy=zero_copy,
            dtypes={"label": torch.long}, uneven="keep",
        )  # fmt: skip
        with dataset:
            results.append(trained(dataset, workers))
        assert spark.answer() is None
    (copied, losses), (in_place, same_losses) = results
    assert losses == same_losses and torch.equal(copied, in_place) and len(losses) == 2 * 10
    assert in_place.any() and len(set(losses)) == 2 * 10


def test_encoded_images_as_jagged_values(open_supply, spark):
    read = []
    for run in RUNS:
        options = {"columns": ["data", "label"], "batch_size": 7, "ragged": {"data": "jagged"}}
        with open_supply(Dataset, "encoded", *run, **options) as dataset:
            batches = [batch for epoch in dataset.epochs() for batch in epoch]
        assert spark.answer() is None and all(isinstance(batch["data"], Jagged) for batch in batches)
        read.append([(*map(torch.Tensor.tolist, batch["data"]), batch["label"].tolist()) for batch in batches])
    assert read[0] == read[1] and sum(len(labels) for *_, labels in read[0]) == 60
