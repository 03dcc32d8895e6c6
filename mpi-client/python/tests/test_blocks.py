"""Blocks as numpy arrays, tensors and record batches: the values, their types and shapes, and that nothing is copied."""

import numpy
import pyarrow
import pytest
import supply

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")

NUMBERS = {
    "int8": -128, "uint8": 255, "int16": -32768, "uint16": 65535, "int32": -(2**31), "uint32": 2**32 - 1, "int64": -(2**63),
    "uint64": 2**64 - 1, "float32": 0.5, "float64": -0.25,
}  # fmt: skip


def batch(**columns):
    """A record batch of Arrow arrays, or of (values, type); columns without nulls are not nullable."""
    arrays = {name: pyarrow.array(*column) if isinstance(column, tuple) else column for name, column in columns.items()}
    fields = [pyarrow.field(name, array.type, nullable=array.null_count > 0) for name, array in arrays.items()]
    return pyarrow.record_batch(list(arrays.values()), schema=pyarrow.schema(fields))


def received(pair, supplied):
    rank, task = pair
    task.supply(supplied)
    return rank.next_block()


def lies_in_mapping(rank, address, size):
    start, length = rank.mapping
    return start + 65536 <= address and address + size <= start + length


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(pair, kind):
    block = received(pair, batch(x=([NUMBERS[kind], 1, 2], kind)))
    array = block.numpy("x")
    assert array.dtype == kind and array.shape == (3,) and array.tolist() == [NUMBERS[kind], 1, 2]
    assert not array.flags.writeable and lies_in_mapping(pair[0], array.ctypes.data, array.nbytes)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError):
        array.flags.writeable = True


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind not in ("uint16", "uint32", "uint64")])
def test_tensors(pair, kind):
    block = received(pair, batch(x=([NUMBERS[kind], 1, 2], kind)))
    tensor = block.torch("x")
    assert tensor.dtype == getattr(torch, kind) and tensor.tolist() == [NUMBERS[kind], 1, 2]
    assert lies_in_mapping(pair[0], tensor.data_ptr(), tensor.numel() * tensor.element_size())


def test_lists_are_a_matrix(pair):
    values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(12), "float32"), 4)
    block = received(pair, batch(x=values))
    for array in (block.numpy("x"), block.torch("x")):
        assert tuple(array.shape) == (3, 4) and array[1].tolist() == [4, 5, 6, 7]


def test_a_copy_is_its_own(pair):
    block = received(pair, batch(x=([1, 2, 3], "int32"), b=([True, False, True], "bool")))
    array, tensor = block.numpy("x", copy=True), block.torch("x", copy=True)
    array[0], tensor[0] = 7, 8
    assert block.numpy("x").tolist() == [1, 2, 3]
    assert block.numpy("b", copy=True).tolist() == [True, False, True]


def test_bytes_of_one_length_are_a_matrix(pair):
    block = received(pair, batch(x=([b"abc", b"def"], "binary")))
    assert block.numpy("x").shape == (2, 3) and block.numpy("x").tobytes() == b"abcdef"


def test_the_data_of_datums_has_their_shape(pair):
    sizes = {name: ([size, size], "int32") for name, size in (("channels", 1), ("height", 2), ("width", 3))}
    block = received(pair, batch(**sizes, encoded=([False, False], "bool"), data=([b"abcdef", b"ghijkl"], "binary")))
    assert block.numpy("data").shape == (2, 1, 2, 3) and block.torch("data")[1, 0, 1].tolist() == list(b"jkl")


def test_float_datums(pair):
    sizes = {name: ([size], "int32") for name, size in (("channels", 1), ("height", 1), ("width", 2))}
    data = numpy.array([0.5, 2], "float32")
    block = received(pair, batch(**sizes, encoded=([False], "bool"), data=([data.tobytes()], "binary")))
    assert block.numpy("data").dtype == "float32" and block.numpy("data").tolist() == [[[[0.5, 2]]]]


@pytest.mark.parametrize("column, says", [
    ((["a", "bc"], "string"), "pyarrow.record_batch"),
    (([b"a", b"bc"], "binary"), "from 1 to 2 bytes"),
    (([True, False], "bool"), "copy=True"),
    (([1, None], "int32"), "1 of 2 elements are null"),
])  # fmt: skip
def test_what_an_array_can_not_say(pair, column, says):
    block = received(pair, batch(x=column))
    for take in (block.numpy, block.torch):
        with pytest.raises(supply.ColumnError, match=says) as failure:
            take("x")
        assert "'x'" in str(failure.value)


def test_tensors_of_a_type_that_pytorch_lacks(pair):
    block = received(pair, batch(x=([1], "uint32")))
    if hasattr(torch, "uint32"):
        assert block.torch("x").tolist() == [1]
        return
    with pytest.raises(supply.ColumnError, match="block.numpy"):
        block.torch("x")


def test_no_such_column(pair):
    block = received(pair, batch(x=([1], "int32"), y=([1], "int32")))
    with pytest.raises(KeyError, match="there is no column 'z'; there are 'x', 'y'"):
        block.numpy("z")
    assert block.columns == ["x", "y"] and len(block) == 1


def test_a_record_batch_of_everything(pair):
    supplied = batch(
        **{kind: ([number, None, 0], kind) for kind, number in NUMBERS.items()},
        flag=([True, None, False], "bool"),
        plain=([True, False, True], "bool"),
        text=(["ä", None, ""], "string"),
        raw=([b"a\0b", b"", None], "binary"),
        matrix=pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(6), "float64"), 2),
    )
    block = received(pair, supplied)
    got = pyarrow.record_batch(block)
    got.validate(full=True)
    assert got.to_pydict() == supplied.to_pydict()
    assert [(field.name, field.nullable) for field in got.schema] == [(field.name, field.nullable) for field in supplied.schema]
    assert all(mine.type == theirs.type or pyarrow.types.is_fixed_size_list(mine.type) for mine, theirs in zip(got.schema, supplied.schema))
    assert got.column("matrix").type.list_size == 2
    assert pyarrow.schema(block) == got.schema
    for column in got.columns:
        for buffer in column.buffers():
            assert buffer is None or lies_in_mapping(pair[0], buffer.address, buffer.size)


def test_a_type_that_is_not_known_leaves_the_others_readable(pair):
    rank, task = pair
    task.write_schema(pyarrow.schema([pyarrow.field("x", "int32", False), pyarrow.field("when", pyarrow.time64("us"))]))
    task.supply(batch(x=([5], "int32"), when=([5], "int64")))
    block = rank.next_block()
    assert block.numpy("x").tolist() == [5] and block.columns == ["x"]
    with pytest.raises(supply.ContractError, match="'when'"):
        block.numpy("when")
    with pytest.raises(supply.ContractError, match="'when'"):
        pyarrow.record_batch(block)
