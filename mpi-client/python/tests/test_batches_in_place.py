"""Batches of values that lie in a file that is not the pair's. They equal those of values in blocks."""

import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier.torch import DataLoader, Jagged

from foreign_file import ForeignFile
from values import batch, lies_in_mapping

VALUES = [bytes(range(first, first + 24)) for first in range(0, 200, 20)]
LENGTHS = [bytes(range(length)) for length in (24, 5, 30, 0, 13, 12, 40, 1, 50, 33)]
# The first six at equal distances, and the others not.
GAPS = (8, *[16] * 6, 17, 16, 16)
# Blocks of six and four elements.
BLOCKS = (slice(0, 6), slice(6, 10))


@pytest.fixture
def dataset_of(opened, tmp_path):
    """A function: a Dataset of the column x of type binary or binary_view, and what an epoch of it has."""

    def supply_values(kind, values, **options):
        data, task = opened(**{"batch_size": 3, **options})
        file = ForeignFile(tmp_path / "foreign", values, GAPS) if kind == "binary_view" else None
        for part in BLOCKS:
            task.supply(batch(x=(values[part], getattr(pyarrow, kind)())), first_element=part.start, foreign_file=file)
        task.end_of_epoch()
        return data

    return supply_values


KINDS = pytest.mark.parametrize("kind", ["binary", "binary_view"])
ZERO_COPY = pytest.mark.parametrize("zero_copy", [False, True])
WORKERS = pytest.mark.parametrize("workers", [0, 1])


def batches_of(dataset, workers=0):
    return list(DataLoader(dataset, num_workers=workers) if workers else dataset)


def rows(batches):
    return [bytes(row.tolist()) for each in batches for row in each["x"]]


@KINDS
@ZERO_COPY
@WORKERS
@pytest.mark.parametrize("size", [3, 4, 20])
def test_values_of_one_length_are_a_tensor(dataset_of, kind, zero_copy, workers, size):
    got = batches_of(dataset_of(kind, VALUES, batch_size=size, zero_copy=zero_copy), workers)
    assert [each["x"].shape for each in got[:-1]] == [(size, 24)] * (9 // size)
    assert all(each["x"].dtype == torch.uint8 for each in got) and rows(got) == VALUES


def test_a_batch_is_not_copied_with_zero_copy(dataset_of):
    data = dataset_of("binary_view", VALUES, zero_copy=True)
    first, second, *others = list(data)
    assert first["x"].stride() == (40, 1) and second["x"].data_ptr() == first["x"].data_ptr() + 3 * 40
    assert all(each["x"].is_contiguous() for each in others)
    assert not lies_in_mapping(data._opened(), first["x"].data_ptr(), 1)


def test_copies_are_writable(dataset_of):
    data = dataset_of("binary_view", VALUES)
    for each in data:
        assert not each["x"].zero_().any()


@KINDS
@ZERO_COPY
def test_types_of_your_choice(dataset_of, kind, zero_copy):
    got = list(dataset_of(kind, VALUES, batch_size=4, zero_copy=zero_copy, dtypes={"x": torch.float64}))
    assert all(each["x"].dtype == torch.float64 for each in got)
    assert [bytes(map(int, row.tolist())) for each in got for row in each["x"]] == VALUES


@KINDS
@ZERO_COPY
@WORKERS
@pytest.mark.parametrize("size", [3, 4])
def test_jagged_values(dataset_of, kind, zero_copy, workers, size):
    data = dataset_of(kind, LENGTHS, batch_size=size, zero_copy=zero_copy, ragged={"x": "jagged"})
    got = []
    for each in batches_of(data, workers):
        assert isinstance(each["x"], Jagged) and each["x"].offsets[0] == 0
        bounds = each["x"].offsets.tolist()
        got += [bytes(each["x"].values[begin:end].tolist()) for begin, end in zip(bounds, bounds[1:])]
    assert got == LENGTHS


@KINDS
@ZERO_COPY
@WORKERS
def test_lists_of_bytes(dataset_of, kind, zero_copy, workers):
    data = dataset_of(kind, LENGTHS, batch_size=4, zero_copy=zero_copy, ragged={"x": "list"})
    assert [value for each in batches_of(data, workers) for value in each["x"]] == LENGTHS


@KINDS
def test_rows_of_a_batch(dataset_of, kind):
    data = dataset_of(kind, VALUES, collate_fn=lambda rows: [bytes(row["x"].tolist()) for row in rows])
    assert [value for each in data for value in each] == VALUES


@KINDS
def test_values_of_different_lengths_need_an_option(dataset_of, kind):
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*from 0 to 30 bytes: set ragged={'x': 'list'}"):
        list(dataset_of(kind, LENGTHS))


@KINDS
def test_a_mask(dataset_of, kind):
    got = list(dataset_of(kind, VALUES, nulls={"x": "mask"}))
    assert rows(got) == VALUES and all(each["x_mask"].all() for each in got)


def test_an_older_pyarrow_has_no_such_type(dataset_of, monkeypatch):
    data = dataset_of("binary_view", LENGTHS)
    monkeypatch.delattr(pyarrow, "binary_view")
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*in place.*no binary_view.*install pyarrow 16"):
        next(data.epochs()).__arrow_c_stream__()


@KINDS
@ZERO_COPY
def test_a_stream_of_record_batches(dataset_of, kind, zero_copy):
    table = pyarrow.table(next(dataset_of(kind, LENGTHS, zero_copy=zero_copy).epochs()))
    assert table["x"].to_pylist() == LENGTHS
    assert table.schema.field("x").type == (getattr(pyarrow, kind)() if zero_copy else pyarrow.binary())
