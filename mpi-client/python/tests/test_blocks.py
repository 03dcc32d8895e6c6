"""Blocks as numpy arrays, tensors and record batches: values, types and shapes, without a copy."""

import datetime
import decimal

import numpy
import pyarrow
import pytest
import spark_supplier

from values import NUMBERS, UNSIGNED, batch, lies_in_mapping, received

# The methods of a block that return a column. Both give the same values, shapes and errors.
FORMS = ["numpy", "torch"]


def column(block, form, copy=False):
    return getattr(block, form)("x", copy=copy)


def address(array):
    return array.ctypes.data if isinstance(array, numpy.ndarray) else array.data_ptr()


@pytest.mark.parametrize("kind, form", [
    *((kind, "numpy") for kind in NUMBERS),
    *((kind, "torch") for kind in NUMBERS if kind not in UNSIGNED),
])  # fmt: skip
def test_numbers(pair, kind, form):
    block = received(pair, batch(x=([NUMBERS[kind], 1, 2], kind)))
    array = column(block, form)
    assert str(array.dtype).removeprefix("torch.") == kind and array.tolist() == [NUMBERS[kind], 1, 2]
    assert lies_in_mapping(pair[0], address(array), 3 * pyarrow.type_for_alias(kind).bit_width // 8)


def test_an_array_is_read_only(pair):
    array = received(pair, batch(x=([1, 2], "int32"))).numpy("x")
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError):
        array.flags.writeable = True


@pytest.mark.parametrize("form", FORMS)
def test_lists_are_a_matrix(pair, form):
    values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(12), "float32"), 4)
    matrix = column(received(pair, batch(x=values)), form)
    assert matrix.shape == (3, 4) and matrix[1].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_writable(pair, form):
    block = received(pair, batch(x=([1, 2, 3], "int32"), flag=([True, False, True], "bool")))
    array = column(block, form, copy=True)
    array[0] = 7
    assert column(block, form).tolist() == [1, 2, 3]
    assert getattr(block, form)("flag", copy=True).tolist() == [True, False, True]


def test_timestamps(pair):
    block = received(pair, batch(x=([0, 86_400_000_001], pyarrow.timestamp("us", "UTC"))))
    array = block.numpy("x")
    assert array.dtype == "datetime64[us]" and array[1] == numpy.datetime64("1970-01-02T00:00:00.000001")
    assert not array.flags.writeable and lies_in_mapping(pair[0], array.ctypes.data, array.nbytes)


def test_bytes_of_one_length_are_a_matrix(pair):
    block = received(pair, batch(x=([b"abc", b"def"], "binary")))
    assert block.numpy("x").shape == (2, 3) and block.numpy("x").tobytes() == b"abcdef"


def test_the_data_of_datums_has_their_shape(pair):
    sizes = {name: ([size, size], "int32") for name, size in (("channels", 1), ("height", 2), ("width", 3))}
    block = received(pair, batch(**sizes, encoded=([False, False], "bool"), data=([b"abcdef", b"ghijkl"], "binary")))
    assert block.numpy("data").shape == (2, 1, 2, 3) and block.numpy("data")[1, 0, 1].tolist() == list(b"jkl")


def test_float_datums(pair):
    sizes = {name: ([size], "int32") for name, size in (("channels", 1), ("height", 1), ("width", 2))}
    data = numpy.array([0.5, 2], "float32")
    block = received(pair, batch(**sizes, encoded=([False], "bool"), data=([data.tobytes()], "binary")))
    assert block.numpy("data").dtype == "float32" and block.numpy("data").tolist() == [[[[0.5, 2]]]]


@pytest.mark.parametrize("values, says", [
    ((["a", "bc"], "string"), "pyarrow.record_batch"),
    (([b"a", b"bc"], "binary"), "from 1 to 2 bytes"),
    (([True, False], "bool"), "copy=True"),
    (([datetime.date(2026, 1, 1)], pyarrow.date32()), "pyarrow.record_batch"),
    (([decimal.Decimal(1)], pyarrow.decimal128(9, 0)), "pyarrow.record_batch"),
    (([1, None], "int32"), "1 of 2 elements are null"),
])  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_columns_that_an_array_cannot_hold(pair, form, values, says):
    block = received(pair, batch(x=values))
    with pytest.raises(spark_supplier.ColumnError, match=f"'x'.*{says}"):
        column(block, form)


def test_no_such_column(pair):
    block = received(pair, batch(x=([1], "int32"), y=([1], "int32")))
    with pytest.raises(KeyError, match="there is no column 'z'; there are 'x', 'y'"):
        block.numpy("z")
    assert block.columns == ["x", "y"] and len(block) == 1


def test_a_record_batch_of_every_type(pair):
    supplied = batch(
        **{kind: ([number, None, 0], kind) for kind, number in NUMBERS.items()},
        flag=([True, None, False], "bool"),
        plain=([True, False, True], "bool"),
        text=(["ä", None, ""], "string"),
        raw=([b"a\0b", b"", None], "binary"),
        day=([datetime.date(1969, 12, 31), None, datetime.date(2026, 2, 28)], pyarrow.date32()),
        instant=([0, None, -1], pyarrow.timestamp("us", "UTC")),
        wall=([0, None, -1], pyarrow.timestamp("us")),
        price=([decimal.Decimal("-1.25"), None, decimal.Decimal("9" * 18)], pyarrow.decimal128(38, 18)),
        matrix=pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(6), "float64"), 2),
    )
    block = received(pair, supplied)
    got = pyarrow.record_batch(block)
    got.validate(full=True)
    assert got.to_pydict() == supplied.to_pydict()
    assert [(field.name, field.nullable) for field in got.schema] == [
        (field.name, field.nullable) for field in supplied.schema
    ]
    assert all(
        mine.type == theirs.type or pyarrow.types.is_fixed_size_list(mine.type)
        for mine, theirs in zip(got.schema, supplied.schema)
    )
    assert got.column("matrix").type.list_size == 2
    assert pyarrow.schema(block) == got.schema
    for column in got.columns:
        validity, *others = column.buffers()
        for buffer in (validity, others[-1]):
            assert buffer is None or lies_in_mapping(pair[0], buffer.address, buffer.size)


def test_a_column_of_an_unknown_type_leaves_the_others_readable(pair):
    rank, task = pair
    task.write_schema(pyarrow.schema([pyarrow.field("x", "int32", False), pyarrow.field("when", pyarrow.time64("us"))]))
    task.supply(batch(x=([5], "int32"), when=([5], "int64")))
    block = rank.next_block()
    assert block.numpy("x").tolist() == [5] and block.columns == ["x"]
    with pytest.raises(spark_supplier.ContractError, match="'when'"):
        block.numpy("when")
    with pytest.raises(spark_supplier.ContractError, match="'when'"):
        pyarrow.record_batch(block)
