"""Columns whose values lie in a file that is not the pair's: arrays over it, copies, record batches."""

import os

import numpy
import pyarrow
import pytest
import spark_supplier

from foreign_file import ForeignFile
from values import batch, lies_in_mapping

FORMS = ["numpy", "torch"]
VALUES = [bytes(range(first, first + 24)) for first in (0, 50, 100)]
SHORT = [b"first", b"other", b"third"]
# Gaps in front of the values: 16 bytes between two of them are equal distances. The last gap of UNEQUAL is another one.
EQUAL, UNEQUAL = (8, 16, 16), (8, 16, 17)


@pytest.fixture
def received(pair, tmp_path):
    """A function that supplies values in place, in the column x or data, and returns the block."""

    def receive(values, gaps=EQUAL, windows=(0,), name="x", **columns):
        rank, task = pair
        file = ForeignFile(tmp_path / "foreign", values, gaps, windows)
        task.supply(batch(**columns, **{name: (values, pyarrow.binary_view())}), foreign_file=file)
        return rank.next_block()

    return receive


def datums(channels, height, width, count):
    sizes = {"channels": channels, "height": height, "width": width}
    columns = {name: ([size] * count, "int32") for name, size in sizes.items()}
    return {**columns, "encoded": ([False] * count, "bool")}


def column(block, form, name="x", copy=False):
    return numpy.asarray(getattr(block, form)(name, copy=copy))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("windows, gaps", [((0,), EQUAL), ((0, 8), EQUAL), ((0,), (8, 65536, 65536))])
def test_values_at_equal_distances_are_one_array(received, pair, form, windows, gaps):
    block = received(VALUES, gaps=gaps, windows=windows)
    array = column(block, form)
    assert array.shape == (3, 24) and array.strides == (24 + gaps[1], 1)
    assert [row.tobytes() for row in array] == VALUES
    assert not lies_in_mapping(pair[0], array.ctypes.data, 1)


def test_an_array_is_read_only(received):
    array = received(VALUES).numpy("x")
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("windows, gaps", [((0,), UNEQUAL), ((0, 40), EQUAL), ((0,), (8, 65537, 65537))])
def test_other_values_need_a_copy(received, form, windows, gaps):
    block = received(VALUES, gaps=gaps, windows=windows)
    with pytest.raises(spark_supplier.ColumnError, match=r"'x'.*equal distances.*copy=True, or block.views\('x'\)"):
        column(block, form)
    copy = column(block, form, copy=True)
    assert [row.tobytes() for row in copy] == VALUES and copy.flags.writeable and copy.flags.c_contiguous


def test_bytes_in_place_are_counted(received, pair):
    block = received(VALUES)
    assert pair[0].statistics.bytes == block.bytes + sum(map(len, VALUES))


@pytest.mark.parametrize("form", FORMS)
def test_short_values_stand_in_their_views(received, form):
    block = received(SHORT)
    assert [row.tobytes() for row in column(block, form)] == SHORT
    assert [row.tobytes() for row in column(block, form, copy=True)] == SHORT


def test_values_of_any_length(received):
    values = [VALUES[0], b"", b"short", VALUES[1][:13]]
    block = received(values, gaps=(8, 0, 0, 3))
    for copy in (False, True):
        with pytest.raises(
            spark_supplier.ColumnError, match=r"'x'.*from 0 to 24 bytes: block.views\('x'\), or use Arrow"
        ):
            block.numpy("x", copy=copy)
    views = block.views("x")
    assert [bytes(view) for view in views] == values
    with pytest.raises(ValueError, match="read-only"):
        views[0][0] = 1


@pytest.mark.parametrize("values, kind, expected", [
    (["ä", "bc"], "string", ["ä".encode(), b"bc"]), ([b"", b"a\0"], "binary", [b"", b"a\0"]),
])  # fmt: skip
def test_views_of_values_in_the_block(pair, values, kind, expected):
    rank, task = pair
    task.supply(batch(x=(values, kind), y=([1, 2], "int32")))
    block = rank.next_block()
    assert [bytes(view) for view in block.views("x")] == expected
    with pytest.raises(spark_supplier.ColumnError, match="'y'.*block.numpy"):
        block.views("y")


def test_views_of_nulls_are_refused(pair):
    rank, task = pair
    task.supply(batch(x=([b"a", None], "binary")))
    with pytest.raises(spark_supplier.ColumnError, match="1 of 2 elements are null"):
        rank.next_block().views("x")


@pytest.mark.parametrize("form", FORMS)
def test_the_data_of_datums_has_their_shape(received, form):
    block = received(VALUES, name="data", **datums(2, 3, 4, 3))
    for copy in (False, True):
        array = column(block, form, "data", copy)
        assert array.shape == (3, 2, 3, 4) and array.dtype == numpy.uint8
        assert array[2, 1, 2].tolist() == list(VALUES[2][20:])


@pytest.mark.parametrize("form", FORMS)
def test_floats(received, form):
    floats = numpy.arange(18, dtype="float32").reshape(3, 1, 2, 3)
    values = [value.tobytes() for value in floats]
    array = column(received(values, name="data", **datums(1, 2, 3, 3)), form, "data")
    assert array.dtype == numpy.float32 and array.strides[0] == 40 and numpy.array_equal(array, floats)


@pytest.mark.parametrize("gaps", [(9, 16, 16), (8, 17, 17)], ids=["address", "distance"])
def test_floats_that_are_not_aligned_need_a_copy(received, gaps):
    floats = numpy.arange(18, dtype="float32").reshape(3, 1, 2, 3)
    block = received([value.tobytes() for value in floats], gaps=gaps, name="data", **datums(1, 2, 3, 3))
    with pytest.raises(spark_supplier.ColumnError, match="multiples of 4 bytes: copy=True"):
        block.numpy("data")
    assert numpy.array_equal(block.numpy("data", copy=True), floats)


@pytest.mark.parametrize("values", [VALUES, SHORT, [VALUES[0], b"", SHORT[0]]], ids=["long", "short", "both"])
def test_a_record_batch(received, values):
    block = received(values, gaps=UNEQUAL)
    got = pyarrow.record_batch(block)
    got.validate(full=True)
    assert got.schema == pyarrow.schema(block) and got.schema.field("x").type == pyarrow.binary_view()
    assert got.column("x").to_pylist() == values
    assert block.columns == ["x"]


@pytest.mark.parametrize("read", [
    lambda rank, block: pyarrow.record_batch(block), lambda rank, block: pyarrow.schema(rank),
    lambda rank, block: rank.__arrow_c_stream__(),
])  # fmt: skip
def test_an_older_pyarrow_has_no_such_type(pair, tmp_path, monkeypatch, read):
    rank, task = pair
    file = ForeignFile(tmp_path / "foreign", VALUES, EQUAL)
    for _ in range(2):
        task.supply(batch(x=(VALUES, pyarrow.binary_view())), foreign_file=file)
    block = rank.next_block()
    monkeypatch.delattr(pyarrow, "binary_view")
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*in place.*no binary_view.*install pyarrow 16"):
        read(rank, block)


def test_a_record_batch_has_no_bytes_around_its_values(received):
    rows = pyarrow.record_batch(received(VALUES, gaps=(100_000, 16, 16)))
    assert rows.serialize().size < 1000
    assert pyarrow.ipc.read_record_batch(rows.serialize(), rows.schema).column("x").to_pylist() == VALUES


def test_arrays_hold_the_block_and_outlive_the_pair(received, pair):
    rank, task = pair
    block = received(VALUES)
    view, array, rows = block.views("x")[1], block.numpy("x"), pyarrow.record_batch(block)
    del block
    assert task.header("released") == 0
    rank.abort("the test closes it")
    assert bytes(view) == VALUES[1] and array[2].tobytes() == VALUES[2]
    assert rows.column("x").to_pylist() == VALUES


def test_a_dropped_array_releases_the_block(received, pair):
    views = received(VALUES).views("x")
    del views[1:]
    assert pair[1].header("released") == 0
    del views
    assert pair[1].header("released") == 1


def test_a_file_that_changes_is_an_error(pair, tmp_path):
    rank, task = pair
    file = ForeignFile(tmp_path / "foreign", VALUES, EQUAL)
    for _ in range(2):
        task.supply(batch(x=(VALUES, pyarrow.binary_view())), foreign_file=file)
    assert [bytes(view) for view in rank.next_block().views("x")] == VALUES
    os.utime(tmp_path / "foreign", (0, 0))
    with pytest.raises(spark_supplier.SupplyOSError, match="foreign, which Spark supplies in place.*has changed"):
        rank.next_block()
