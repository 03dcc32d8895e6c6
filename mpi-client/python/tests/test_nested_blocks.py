"""Blocks with lists, structs and maps: as numpy arrays, tensors and record batches."""

import datetime

import numpy
import pyarrow
import pytest
import spark_supplier

from layout import CONSTANTS, put
from values import batch, lies_in_mapping, received

FORMS = ["numpy", "torch"]


def list_of(kind):
    return pyarrow.list_(pyarrow.type_for_alias(kind))


LISTS = pyarrow.array([[1, 2], [], [3, 4, 5]], list_of("int32"))
POINT = pyarrow.struct([("x", "int32"), ("inner", pyarrow.struct([("y", "float64"), ("words", list_of("string"))]))])
POINTS = pyarrow.array(
    [{"x": 1, "inner": {"y": 0.5, "words": ["a", ""]}}, {"x": 2, "inner": {"y": -1.5, "words": []}}], POINT
)
MAPS = pyarrow.array([[("a", 1), ("b", 2)], []], pyarrow.map_(pyarrow.string(), pyarrow.int64()))


def of_numbers(rows, width, kind="int32", name="element"):
    """Fixed lists whose numbers are a child."""
    kind = pyarrow.type_for_alias(kind) if isinstance(kind, str) else kind
    return pyarrow.array(rows, pyarrow.list_(pyarrow.field(name, kind), width))


@pytest.mark.parametrize("values", [
    LISTS, POINTS, MAPS,
    pyarrow.array([[1, None], None, [], [2]], list_of("int64")),
    pyarrow.array([[[1], []], [], None, [None, [2, 3]]], pyarrow.list_(list_of("float32"))),
    pyarrow.array([{"x": None}, None, {"x": 1}], pyarrow.struct([("x", "int32")])),
    pyarrow.array([{"x": None}, None], pyarrow.struct([("x", list_of("bool"))])),
    pyarrow.array([[("a", None)], None, [("b", [1, 2])]], pyarrow.map_(pyarrow.string(), list_of("int32"))),
    pyarrow.array([["a", None, ""], [], None], list_of("string")),
    pyarrow.array([[True, None], [False]], list_of("bool")),
    pyarrow.array([[{"x": 1}], [], [{"x": 2}, None]], pyarrow.list_(pyarrow.struct([("x", "int32")]))),
    of_numbers([[1, None], None, [3, 4]], 2),
    pyarrow.array([None, None], list_of("int32")),
    pyarrow.array([[], []], list_of("int32")),
    pyarrow.array([None, None], POINT),
    pyarrow.array([numpy.float16(1.5), None], pyarrow.float16()),
    pyarrow.array([5, None], pyarrow.duration("us")),
    pyarrow.array([datetime.time(0, 0, 5), None], pyarrow.time64("ns")),
])  # fmt: skip
def test_a_record_batch(pair, values):
    supplied = batch(x=values)
    block = received(pair, supplied)
    got = pyarrow.record_batch(block)
    got.validate(full=True)
    assert got.column("x").to_pylist() == values.to_pylist() and pyarrow.schema(block) == got.schema


@pytest.mark.parametrize("form", FORMS)
def test_lists_are_jagged_in_place(pair, form):
    values, offsets = getattr(received(pair, batch(x=LISTS)), form)("x")
    assert values.tolist() == [1, 2, 3, 4, 5] and offsets.tolist() == [0, 2, 2, 5]
    address = values.ctypes.data if form == "numpy" else values.data_ptr()
    assert lies_in_mapping(pair[0], address, 20)


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_writable(pair, form):
    block = received(pair, batch(x=LISTS))
    jagged = getattr(block, form)("x", copy=True)
    jagged.values[0] = 7
    jagged.offsets[0] = 1
    assert getattr(block, form)("x").values.tolist() == [1, 2, 3, 4, 5]
    assert getattr(block, form)("x").offsets.tolist() == [0, 2, 2, 5]


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_lists(pair, form):
    values = pyarrow.array([[[1], [2, 3]], [], [[]]], pyarrow.list_(list_of("float32")))
    jagged = getattr(received(pair, batch(x=values)), form)("x")
    assert jagged.offsets.tolist() == [0, 2, 2, 3] and jagged.values.offsets.tolist() == [0, 1, 3, 3]
    assert jagged.values.values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind, dtype", [
    ("int32", "int32"), (pyarrow.float16(), "float16"), (pyarrow.time64("ns"), "int64"),
])  # fmt: skip
def test_fixed_lists_are_one_array_in_place(pair, form, kind, dtype):
    rows = [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]
    inner = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numpy.arange(1, 13, dtype=dtype), kind), 3)
    outer = pyarrow.list_(pyarrow.field("element", inner.type), 2)
    values = pyarrow.FixedSizeListArray.from_arrays(inner, type=outer)
    array = getattr(received(pair, batch(x=values)), form)("x")
    assert str(array.dtype).removeprefix("torch.") == dtype and array.tolist() == rows
    address = array.ctypes.data if form == "numpy" else array.data_ptr()
    assert lies_in_mapping(pair[0], address, array.itemsize * 12 if form == "numpy" else array.element_size() * 12)


@pytest.mark.parametrize("form", FORMS)
def test_fixed_lists_of_booleans_and_of_lists(pair, form):
    flags = of_numbers([[True, False], [False, False]], 2, "bool")
    lists = of_numbers([[[1], [2, 3]], [[], [4]]], 2, list_of("int32"))
    block = received(pair, batch(x=flags, y=lists))
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*copy=True"):
        getattr(block, form)("x")
    assert getattr(block, form)("x", copy=True).tolist() == [[True, False], [False, False]]
    jagged = getattr(block, form)("y")
    assert jagged.offsets.tolist() == [0, 2, 4] and jagged.values.offsets.tolist() == [0, 1, 3, 3, 4]


@pytest.mark.parametrize("form", FORMS)
def test_structs_are_dicts_and_their_fields_columns(pair, form):
    struct = pyarrow.StructArray.from_arrays([pyarrow.array([1, 2]), pyarrow.array([0.5, 1])], ["x", "a.b"])
    values = batch(s=pyarrow.StructArray.from_arrays([struct, pyarrow.array([5, 6])], ["inner", "n"]))
    block = received(pair, values)
    read = getattr(block, form)
    got = read("s")
    assert got["inner"]["x"].tolist() == [1, 2] and got["n"].tolist() == [5, 6] and block.columns == ["s"]
    assert read("s.inner.x").tolist() == [1, 2] and read("s.inner.a.b").tolist() == [0.5, 1]
    with pytest.raises(KeyError, match="there is no column 's.z'; there are 's.inner', 's.n'"):
        read("s.z")


def test_a_column_that_is_called_as_a_field_wins(pair):
    struct = pyarrow.StructArray.from_arrays([pyarrow.array([1, 2])], ["x"])
    block = received(pair, batch(**{"s": struct, "s.x": ([7, 8], "int64")}))
    assert block.numpy("s.x").tolist() == [7, 8]


@pytest.mark.parametrize("form", FORMS)
def test_maps_are_two_lists(pair, form):
    values = pyarrow.array([[(1, 0.5), (2, 1.5)], []], pyarrow.map_(pyarrow.int32(), pyarrow.float64()))
    got = getattr(received(pair, batch(x=values)), form)("x")
    assert got["keys"].values.tolist() == [1, 2] and got["values"].values.tolist() == [0.5, 1.5]
    assert got["keys"].offsets.tolist() == got["values"].offsets.tolist() == [0, 2, 2]


def test_durations_and_times(pair):
    block = received(pair, batch(x=([5], pyarrow.duration("us")), y=([6], pyarrow.time64("ns"))))
    assert block.numpy("x")[0] == numpy.timedelta64(5, "us") and block.numpy("y").dtype == "int64"


@pytest.mark.parametrize("form", FORMS)
def test_months(pair, form):
    """pyarrow cannot make this type."""
    rank, task = pair
    supplied = batch(x=([14, -1], "int32"))
    task.write_schema(supplied.schema)
    put(task.memory, "schema_entry", CONSTANTS["SCHEMA_OFFSET"], format="tiM")
    task.supply(supplied)
    block = rank.next_block()
    array = getattr(block, form)("x")
    assert str(array.dtype).removeprefix("torch.") == "int32" and array.tolist() == [14, -1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values, name, says", [
    (pyarrow.array([[1, None]], list_of("int32")), "x", "'x'.*format 'i'.*1 of 2 elements are null"),
    (pyarrow.array([[1], None], list_of("int32")), "x", r"'x'.*'\+l'.*1 of 2 elements are null"),
    (of_numbers([[1, None], [None, 2]], 2), "x", "'x'.*2 of the values in its lists are null"),
    (of_numbers([[1, 3], None], 2), "x", "'x'.*1 of 2 elements are null"),
    (pyarrow.array([{"a": 1}, None], pyarrow.struct([("a", "int32")])), "x", "'x.a'.*1 of 2 elements are null"),
    (POINTS, "x", "'x.inner.words'.*record_batch"),
    (MAPS, "x", "'x.keys'.*record_batch"),
    (pyarrow.array([[datetime.date(2026, 1, 1)]], pyarrow.list_(pyarrow.date32())), "x", "'x'.*without a copy"),
])  # fmt: skip
def test_columns_that_arrays_cannot_hold(pair, form, values, name, says):
    with pytest.raises(spark_supplier.ColumnError, match=says):
        getattr(received(pair, batch(x=values)), form)(name)


def test_a_null_has_no_nulls_within(pair):
    """What the children have for a null means nothing."""
    inner = pyarrow.array([1, 2, None, None], "int32")
    fixed = pyarrow.FixedSizeListArray.from_arrays(
        inner, type=pyarrow.list_(pyarrow.field("element", pyarrow.int32()), 2), mask=pyarrow.array([False, True])
    )
    block = received(pair, batch(x=fixed))
    assert block._column("x").null_count == 1 and block._column("x").nulls_within() == 0


def test_fields_hold_the_block(pair):
    block = received(pair, batch(x=POINTS))
    y = block.numpy("x.inner.y")
    del block
    assert y.tolist() == [0.5, -1.5] and pair[1].header("released") == 0
    del y
    assert pair[1].header("released") == 1


def test_views_of_a_field(pair):
    text = pyarrow.StructArray.from_arrays([pyarrow.array(["ä", "b"])], ["name"])
    assert [bytes(view) for view in received(pair, batch(x=text)).views("x.name")] == ["ä".encode(), b"b"]
