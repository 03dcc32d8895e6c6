"""The columns of a batch: types, texts, values of different lengths, nulls. Batches span blocks, too."""

import datetime
import decimal
from typing import Any

import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier.batches import Batches, _PartialBatch
from spark_supplier.block_values import BlockValues
from spark_supplier.equal_steps import _rows_of
from spark_supplier.torch import Dataset, Jagged

from values import UNSIGNED, batch


@pytest.fixture
def batches_of(batches_of_blocks):
    """A function: the batches of an epoch with these blocks. Each block is a list of the column x, of an Arrow type."""
    return lambda kind, *blocks, **options: batches_of_blocks([batch(x=(block, kind)) for block in blocks], **options)


ZERO_COPY = pytest.mark.parametrize("zero_copy", [False, True])


@ZERO_COPY
@pytest.mark.parametrize("kind, values, dtype, expected", [
    ("bool", [True, False, True, True], torch.bool, [True, False, True, True]),
    (pyarrow.date32(), [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)] * 2, torch.int32, [1, -1] * 2),
    (pyarrow.timestamp("us", "UTC"), [0, 5, 6, 7], torch.int64, [0, 5, 6, 7]),
    ("float32", [0.5, 1, 2, 3], torch.float32, [0.5, 1, 2, 3]),
])  # fmt: skip
def test_numbers(batches_of, zero_copy, kind, values, dtype, expected):
    whole, rest = batches_of(kind, values[:3], values[3:], zero_copy=zero_copy)
    assert whole["x"].dtype == rest["x"].dtype == dtype
    assert whole["x"].tolist() + rest["x"].tolist() == expected


@ZERO_COPY
def test_columns_of_numbers_alone(batches_of_blocks, zero_copy):
    lists = pyarrow.list_(pyarrow.field("item", pyarrow.float32(), nullable=False), 2)
    blocks = [batch(x=(x, "int64"), y=(y, lists)) for x, y in [([1, 2, 3], [[1, 2], [3, 4], [5, 6]]), ([4], [[7, 8]])]]
    whole, rest = batches_of_blocks(blocks, columns=["y", "x"], zero_copy=zero_copy)
    assert list(whole) == ["y", "x"]
    assert whole["x"].tolist() == [1, 2, 3] and whole["y"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert rest["x"].tolist() == [4] and rest["y"].tolist() == [[7, 8]]


@ZERO_COPY
def test_a_null_in_a_later_block_of_numbers(batches_of, zero_copy):
    with pytest.raises(spark_supplier.ColumnError, match="column 'x'.*1 of 3 elements are null.*nulls="):
        batches_of("int32", [1, 2, 3], [4, None, 6], zero_copy=zero_copy)


@ZERO_COPY
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("blocks", [[[1, 2, 3]], [[1, 2], [3]]], ids=["one block", "two blocks"])
def test_types_of_your_choice(batches_of, zero_copy, blocks, workers):
    [got] = batches_of("int32", *blocks, zero_copy=zero_copy, workers=workers, dtypes={"x": torch.float64})
    assert got["x"].dtype == torch.float64 and got["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_type_that_numpy_does_not_have(batches_of, workers):
    [got] = batches_of("int32", [1, 2], [3], workers=workers, dtypes={"x": torch.bfloat16})
    assert got["x"].dtype == torch.bfloat16 and got["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", UNSIGNED)
def test_unsigned_integers_with_a_type(batches_of, kind):
    [got] = batches_of(kind, [1, 2], [65535], dtypes={"x": torch.long})
    assert got["x"].dtype == torch.long and got["x"].tolist() == [1, 2, 65535]


TEXTS = [["ä", "", "b", "cd", "e"], ["f", "long text"]]


@ZERO_COPY
@pytest.mark.parametrize("workers", [0, 1])
def test_texts_are_lists(batches_of, zero_copy, workers):
    batches = batches_of("string", *TEXTS, zero_copy=zero_copy, workers=workers)
    assert [got["x"] for got in batches] == [["ä", "", "b"], ["cd", "e", "f"], ["long text"]]


@pytest.mark.parametrize("in_lists", [False, True])
def test_text_that_is_no_utf8_is_named_by_column_and_value(batches_of_blocks, in_lists):
    texts = [
        pyarrow.array(values, pyarrow.binary()).view(pyarrow.string()) for values in ([b"a", b"b"], [b"c", b"A\xc3"])
    ]
    if in_lists:
        texts = [pyarrow.ListArray.from_arrays([0, 1, 2], text) for text in texts]
    with pytest.raises(
        spark_supplier.ColumnError, match=r"column 'x' of block 1 .*value 1 is no UTF-8 .*cast the column to binary"
    ):
        batches_of_blocks([batch(x=text) for text in texts])


def test_bytes_as_lists(batches_of):
    batches = batches_of("binary", [b"a", b"", b"bc", b"d"], [b"e"], ragged={"x": "list"})
    assert [got["x"] for got in batches] == [[b"a", b"", b"bc"], [b"d", b"e"]]


@ZERO_COPY
@pytest.mark.parametrize("workers", [0, 1])
def test_bytes_as_jagged_tensors(batches_of, zero_copy, workers):
    first, second = batches_of(
        "binary", [b"a", b"", b"bc", b"d"], [b"ef"], ragged={"x": "jagged"}, zero_copy=zero_copy, workers=workers
    )
    assert isinstance(first["x"], Jagged) and bytes(first["x"].values.tolist()) == b"abc"
    assert first["x"].offsets.tolist() == [0, 1, 1, 3]
    assert bytes(second["x"].values.tolist()) == b"def" and second["x"].offsets.tolist() == [0, 1, 3]


def test_zero_copy_jagged_values_are_views(opened):
    data, task = opened(batch_size=1, ragged={"x": "jagged"}, zero_copy=True)
    task.supply(batch(x=([b"a", b"bc"], "binary")))
    start, size = data._opened().mapping
    batches = iter(data)
    next(batches)
    assert start < next(batches)["x"].values.data_ptr() < start + size
    del batches


@ZERO_COPY
@pytest.mark.parametrize("workers", [0, 1])
def test_nulls_with_a_mask(batches_of, zero_copy, workers):
    first, second = batches_of(
        "int64", [1, None, 3, None], [5], nulls={"x": "mask"}, zero_copy=zero_copy, workers=workers
    )
    assert (first["x"].tolist(), first["x_mask"].tolist()) == ([1, 0, 3], [True, False, True])
    assert (second["x"].tolist(), second["x_mask"].tolist()) == ([0, 5], [False, True])


@pytest.mark.parametrize("kind, values, fill, expected", [
    ("float32", [0.5, None], -1, [0.5, -1]), ("bool", [None, True], False, [False, True]),
])  # fmt: skip
def test_nulls_with_a_value(batches_of, kind, values, fill, expected):
    [got] = batches_of(kind, values, [values[0] if values[0] is not None else True], nulls={"x": fill})
    assert got["x"].tolist()[:2] == expected and list(got) == ["x"]


def test_nulls_with_a_value_of_the_chosen_type(batches_of):
    [got] = batches_of("int32", [1, None], [3], nulls={"x": 0.5}, dtypes={"x": torch.float32})
    assert got["x"].tolist() == [1, 0.5, 3]


@pytest.mark.parametrize("fill", [0.5, float("nan")])
def test_a_value_for_nulls_that_does_not_fit(batches_of, fill):
    with pytest.raises(spark_supplier.ColumnError, match="column 'x'.*nulls gives .*, and torch.int32 has integers"):
        batches_of("int32", [1, None], nulls={"x": fill})


def test_nulls_of_a_list_are_none(batches_of):
    [got] = batches_of("string", ["a", None, "c"])
    assert got["x"] == ["a", None, "c"]


@ZERO_COPY
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind, values, fill, expected", [
    ("string", ["a", None, None], "", ["a", "", ""]),
    ("string", [None, "b", None], "ä?", ["ä?", "b", "ä?"]),
    ("string", [None, "b", None], "mask", ["", "b", ""]),
    ("binary", [b"a", None, b"bc"], b"none", [b"a", b"none", b"bc"]),
    ("binary", [b"a", None, b"bc"], "mask", [b"a", b"", b"bc"]),
])  # fmt: skip
def test_nulls_of_text_and_bytes(batches_of, kind, values, fill, expected, zero_copy, workers):
    options = {"nulls": {"x": fill}, "zero_copy": zero_copy, "workers": workers}
    # The first batch lies in one block, the second one in two.
    batches = batches_of(kind, [*values, values[0]], values[1:], ragged={"x": "list"}, **options)
    assert [batch["x"] for batch in batches] == [expected, expected]
    if fill == "mask":
        assert [batch["x_mask"].tolist() for batch in batches] == [[value is not None for value in values]] * 2
    else:
        assert list(batches[0]) == ["x"]


@ZERO_COPY
@pytest.mark.parametrize("kind, values, fill, expected", [
    ("string", ["a", None, "ä"], "none", ["a", "none", "ä"]),
    ("string", ["a", None, "ä"], "mask", ["a", "", "ä"]),
    ("binary", [None, None, b"bc"], b"", ["", "", "bc"]),
    ("binary", [None, None, None], "mask", ["", "", ""]),
])  # fmt: skip
def test_nulls_of_jagged_values(batches_of, kind, values, fill, expected, zero_copy):
    options = {"nulls": {"x": fill}, "zero_copy": zero_copy}
    for got in batches_of(kind, [*values, values[0]], values[1:], ragged={"x": "jagged"}, **options):
        data, bounds = bytes(got["x"].values.tolist()), got["x"].offsets.tolist()
        assert [data[begin:end].decode() for begin, end in zip(bounds, bounds[1:])] == expected
        if fill == "mask":
            assert got["x_mask"].tolist() == [value is not None for value in values]


@pytest.mark.parametrize("kind, values, options, says", [
    ("string", ["a", None], {"nulls": {"x": 0}}, "nulls gives 0, and the column has text: give '', other text, or 'm"),
    ("binary", [b"a", None], {"nulls": {"x": "no"}, "ragged": {"x": "list"}}, "nulls gives 'no', and the column has"),
    ("int64", [1, None], {"nulls": {"x": "no"}}, "nulls gives 'no', and the batch has numbers here"),
    ("string", ["a", None], {"ragged": {"x": "jagged"}}, "1 of 2 elements are null: nulls={'x': ''} gives them"),
])  # fmt: skip
def test_values_for_nulls_of_another_kind(batches_of, kind, values, options, says):
    with pytest.raises(spark_supplier.ColumnError, match=says):
        batches_of(kind, values, **options)


@pytest.mark.parametrize("kind, values, says", [
    ("int64", [1, None], r"1 of 2 elements are null: nulls=\{'x': 0\} gives"),
    ("binary", [b"a", b"bc"], r"ragged=\{'x': 'list'\}"),
    (pyarrow.decimal128(9, 2), [decimal.Decimal("1.25")], "cast the column to double"),
])  # fmt: skip
def test_columns_that_need_an_option(batches_of, kind, values, says):
    with pytest.raises(spark_supplier.ColumnError, match=f"column 'x'.*{says}"):
        batches_of(kind, values)


FIRST_AGAIN = torch.tensor([0, 1, 0])


def test_lists_that_pad_repeats(batches_of):
    [got] = batches_of("string", ["a", "b"])
    assert _rows_of(got, FIRST_AGAIN)["x"] == ["a", "b", "a"]


def test_jagged_values_that_pad_repeats(batches_of):
    [got] = batches_of("binary", [b"a", b"bc"], ragged={"x": "jagged"})
    repeated: Any = _rows_of(got, FIRST_AGAIN)["x"]
    assert bytes(repeated.values.tolist()) == b"abca" and repeated.offsets.tolist() == [0, 1, 3, 4]


def test_a_collate_fn_gets_rows(batches_of):
    [got] = batches_of(
        "binary", [b"a", None, b"bc"], ragged={"x": "list"}, collate_fn=lambda rows: [row["x"] for row in rows]
    )
    assert got == [b"a", None, b"bc"]


@pytest.mark.parametrize("wrong, says", [
    ({"dtypes": {"y": torch.long}}, r"dtypes names 'y', which is not one of columns \(x, label\)"),
    ({"nulls": {"lable": 0}}, r"nulls names 'lable', .* \(did you mean 'label'\?\)"),
    ({"ragged": {"y": "list"}}, "ragged names 'y'"),
    ({"ragged": {"x": "tensor"}}, r"ragged\['x'\] is 'tensor': it must be 'list', 'jagged', 'pad', 'nested' or 's"),
    ({"dtypes": {"x": "float32"}}, "dtypes gives 'float32' .* for 'x': it must be a torch.dtype"),
    ({"dtypes": ["x"]}, r"dtypes is \['x'\] \(list\): it must be a dict by column"),
    ({"nulls": {"x": None}}, "nulls gives None .* for 'x': it must be a number, for text a text"),
    ({"nulls": {"x": "mask"}, "columns": ["x", "x_mask"]}, "adds a column 'x_mask', and columns has one of that name"),
    ({"nulls": {"x": "mask"}, "columns": ["x_mask", "x"]}, "adds a column 'x_mask', and columns has one of that name"),
    ({"transform": len, "collate_fn": len}, "set either transform or collate_fn"),
    ({"collate_fn": 5}, r"collate_fn is 5 \(int\): it must be a function"),
    ({"batch_size": 0}, "batch_size is 0: it must be a whole number, 1 or more"),
    ({"batch_size": "32"}, r"batch_size is '32' \(str\): it must be a whole number"),
    ({"batch_size": True}, r"batch_size is True \(bool\): it must be a whole number"),
    ({"columns": "x"}, r"columns is 'x' \(str\): it must be a list of names"),
    ({"columns": []}, "columns is empty"),
    ({"columns": [0]}, r"columns\[0\] is 0 \(int\): give the names of columns"),
    ({"columns": ["x", "x"]}, "columns names 'x' twice"),
    ({"uneven": "maybe"}, "uneven is 'maybe': it must be 'keep', 'drop' or 'pad'"),
    ({"position": "x"}, "leave position out"),
    ({"ring": "8 MB"}, "ring is '8 MB': it must be a number of bytes, or a text as"),
    ({"block": 0}, "block is 0: it must be"),
])  # fmt: skip
def test_wrong_options(files, wrong, says):
    with pytest.raises(spark_supplier.ConfigError, match=says):
        Dataset(files.folder, 0, **{"columns": ["x", "label"], "batch_size": 4, **wrong})


def test_an_option_that_does_not_exist(files):
    with pytest.raises(TypeError, match=r"Dataset has no option 'time_out' \(did you mean 'timeout'\?\)"):
        Dataset(files.folder, 0, columns=["x"], batch_size=4, time_out=5)


def test_sizes_as_text(opened):
    assert opened(ring="1MiB", block="256KiB")[0]._opened().mapping[1] >= 1 << 20


def test_a_type_that_changes_within_a_batch():
    """The data of an LMDB may be bytes in one block, and numbers in the next."""
    values = BlockValues(["data"], {}, {}, {})
    part = _PartialBatch(Batches(values, 4, {}, False))
    part.append({"data": torch.tensor([[1], [2]], dtype=torch.uint8)}, 2)
    with pytest.raises(spark_supplier.SupplyError, match="column 'data': an element has type torch.float32.*dtypes"):
        part.append({"data": torch.tensor([[0.5]])}, 1)
    named = _PartialBatch(Batches(values, 4, {"data": torch.float32}, False))
    named.append({"data": torch.tensor([[1], [2]], dtype=torch.uint8)}, 2)
    named.append({"data": torch.tensor([[0.5]])}, 1)
    data: Any = named.take()["data"]
    assert data.tolist() == [[1.0], [2.0], [0.5]]
