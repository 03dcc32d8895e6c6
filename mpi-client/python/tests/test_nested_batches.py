"""Lists, structs and maps in batches. The first batch lies in one block, the second one spans two."""

import numpy
import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier.equal_steps import _rows_of
from spark_supplier.torch import Dataset, Jagged

from task import Task
from values import batch

HAS_JAGGED = hasattr(torch.nested, "nested_tensor_from_jagged")


def list_of(kind, **options):
    return pyarrow.list_(pyarrow.type_for_alias(kind) if isinstance(kind, str) else kind, **options)


def fixed_list_of(kind, width):
    return pyarrow.list_(pyarrow.field("element", pyarrow.type_for_alias(kind)), width)


INTS, WORDS, POINT = list_of("int32"), list_of("string"), pyarrow.struct([("x", "int32"), ("name", "string")])
VECTOR = pyarrow.struct([("size", "int32"), ("indices", list_of("int32")), ("values", list_of("float64"))])
SCORES = pyarrow.map_(pyarrow.int64(), pyarrow.float32())


@pytest.fixture
def batches_of(batches_of_blocks):
    """A function: the batches of an epoch with two blocks, all but the last two rows and these."""

    def batches(kind, rows, **options):
        schema = pyarrow.schema([pyarrow.field("x", kind)])
        blocks = [pyarrow.record_batch([pyarrow.array(part, kind)], schema=schema) for part in (rows[:-2], rows[-2:])]
        return batches_of_blocks(blocks, **options)

    return batches


WAYS = pytest.mark.parametrize(
    "way", [{}, {"zero_copy": True}, {"workers": 1}, {"batch_size": 1}], ids=["copy", "zero_copy", "workers", "single"]
)


@pytest.mark.parametrize("kind, row", [(INTS, [1, 2]), (list_of(POINT), [{"x": 1, "name": "a"}])])
def test_a_state_with_lists_is_read_with_weights_only(opened, tmp_path, kind, row):
    data, task = opened(batch_size=2, uneven="pad")
    task.supply(batch(x=pyarrow.array([row, []], kind)))
    next(iter(data))
    torch.save(data.state_dict(), tmp_path / "state.pt")
    other = Dataset(columns=["x"], batch_size=2, uneven="pad")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert other._last is not None and plain(other._last["x"]) == [row, []]


def plain(values):
    """Each element in Python's own types."""
    if isinstance(values, dict):
        parts = {name: plain(part) for name, part in values.items()}
        return [dict(zip(parts, row)) for row in zip(*parts.values())]
    if isinstance(values, Jagged):
        inner, bounds = plain(values.values), values.offsets.tolist()
        assert bounds[0] == 0 and bounds[-1] == len(inner) and values.offsets.dtype == torch.int64
        return [inner[begin:end] for begin, end in zip(bounds, bounds[1:])]
    return (
        values.tolist()
        if isinstance(values, torch.Tensor)
        else [plain(value) if isinstance(value, torch.Tensor) else value for value in values]
    )


def all_of(batches, name="x"):
    return [row for each in batches for row in plain(each[name])]


@WAYS
@pytest.mark.parametrize("kind, rows", [
    (INTS, [[1, 2], [], [3], [4, 5, 6], [7]]),
    (INTS, [[], [], [], [], []]),
    (list_of(INTS), [[[1], [2, 3]], [], [[]], [[4], [], [5, 6]], [[7]]]),
    (list_of("float64"), [[0.5], [1.5, 2.5], [], [], [3.5]]),
    (list_of("bool"), [[True], [False, True], [], [], [True]]),
    (list_of(fixed_list_of("int32", 2)), [[[1, 2], [3, 4]], [], [[5, 6]], [], [[7, 8]]]),
    (fixed_list_of("int32", 2), [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]),
    (fixed_list_of("bool", 2), [[True, False]] * 4 + [[False, True]]),
    (WORDS, [["ä", ""], [], ["b"], ["cd"], []]),
    (list_of(WORDS), [[["a"], []], [], [["b", "c"]], [], [["d"]]]),
    (list_of("binary"), [[b"ab", b""], [], [b"c"], [], [b"d"]]),
    (pyarrow.struct([("x", "int32"), ("t", INTS)]), [{"x": i, "t": [i] * i} for i in range(5)]),
    (POINT, [{"x": i, "name": str(i)} for i in range(5)]),
    (list_of(pyarrow.struct([("x", "int32"), ("y", "float32")])), [[{"x": 1, "y": 0.5}] * i for i in range(5)]),
])  # fmt: skip
def test_values(batches_of, kind, rows, way):
    batches = batches_of(kind, rows, **way)
    assert all_of(batches) == rows and len(batches) == (5 if way.get("batch_size") else 2)


@WAYS
def test_maps_are_two_lists(batches_of, way):
    rows = [[(1, 0.5), (2, 1.5)], [], [(3, 2.5)], [], [(4, 3.5), (5, 4.5)]]
    batches = batches_of(SCORES, rows, **way)
    assert [list(zip(row["keys"], row["values"])) for row in all_of(batches)] == rows


@WAYS
@pytest.mark.parametrize("kind, rows, dtype", [
    (INTS, [[1, 2], [], [3], [4], [5]], torch.long), (INTS, [[1], [2], [3], [4], [5]], torch.bfloat16),
    (pyarrow.struct([("t", list_of(INTS))]), [{"t": [[i]]} for i in range(5)], torch.float64),
])  # fmt: skip
def test_types_of_your_choice(batches_of, kind, rows, dtype, way):
    batches = batches_of(kind, rows, dtypes={"x": dtype}, **way)
    values = batches[0]["x"]
    assert (values["t"].values if isinstance(values, dict) else values).values.dtype == dtype and all_of(
        batches
    ) == rows


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("ragged", ["pad", {"x": "pad"}])
@pytest.mark.parametrize("kind, rows, expected", [
    (INTS, [[1, 2], [], [3], [4], [5]], [[[1, 2], [0, 0], [3, 0]], [[4], [5]]]),
    (list_of(INTS), [[[1], [2, 3]], [], [[4]], [], []],
     [[[[1, 0], [2, 3]], [[0, 0], [0, 0]], [[4, 0], [0, 0]]], [[], []]]),
    (INTS, [[], [], [], [], []], [[[], [], []], [[], []]]),
])  # fmt: skip
def test_padded_lists(batches_of, kind, rows, expected, ragged, workers):
    assert [each["x"].tolist() for each in batches_of(kind, rows, ragged=ragged, workers=workers)] == expected


@pytest.mark.parametrize("kind, rows", [
    (INTS, [[1, 2], [], [3], [4], [5]]), (list_of(INTS), [[[1], [2, 3]], [], [[]], [[4]], []]),
])  # fmt: skip
@pytest.mark.parametrize("workers", [0, 1])
def test_lists_of_tensors(batches_of, kind, rows, workers):
    batches = batches_of(kind, rows, ragged="list", workers=workers)
    first = batches[0]["x"][0]
    assert isinstance(first if kind == INTS else first[0], torch.Tensor)

    def numbers(value):
        return value.tolist() if isinstance(value, torch.Tensor) else list(map(numbers, value))

    assert [numbers(value) for each in batches for value in each["x"]] == rows


def test_ragged_for_all_lists_leaves_texts_as_they_are(batches_of):
    kind = pyarrow.struct([("t", INTS), ("w", WORDS), ("n", "string")])
    rows = [{"t": [i] * (i % 2), "w": ["a"] * i, "n": "b"} for i in range(5)]
    first = batches_of(kind, rows, ragged="pad")[0]["x"]
    assert first["t"].tolist() == [[0], [1], [0]] and first["w"] == [[], ["a"], ["a", "a"]] and first["n"] == ["b"] * 3


@pytest.mark.skipif(not HAS_JAGGED, reason="this PyTorch has no jagged layout")
@pytest.mark.parametrize("way", [{}, {"zero_copy": True}])
def test_nested_tensors(batches_of, way):
    rows = [[1, 2], [], [3], [4], [5]]
    batches = batches_of(INTS, rows, ragged={"x": "nested"}, **way)
    assert batches[0]["x"].layout == torch.jagged
    assert [row.tolist() for each in batches for row in each["x"].unbind()] == rows


def test_nested_tensors_that_cannot_be(batches_of):
    says = "lists of numbers, and here" if HAS_JAGGED else "no nested tensors with jagged layout.*ragged={'x': 'pad'}"
    with pytest.raises(spark_supplier.ColumnError, match=f"'x'.*{says}"):
        batches_of(list_of(INTS), [[[1]]] * 5, ragged={"x": "nested"})


@pytest.mark.parametrize("ragged, expected, mask", [
    ("jagged", [[1, 0], [], [], [3]], [[True, False], [], [], [True]]),
    ("pad", [[1, 0], [0, 0], [0, 0], [3, 0]], [[True, False], [False, False], [False, False], [True, False]]),
])  # fmt: skip
@pytest.mark.parametrize("way", [{}, {"zero_copy": True}, {"workers": 1}], ids=["copy", "zero_copy", "workers"])
def test_nulls_of_lists(batches_of, ragged, expected, mask, way):
    rows = [[1, None], None, [], [3], [4], [5]]
    batches = batches_of(INTS, rows, ragged={"x": ragged}, nulls={"x": "mask"}, batch_size=4, **way)
    assert plain(batches[0]["x"]) == expected and plain(batches[0]["x_mask"]) == mask


@pytest.mark.parametrize("nulls, expected, mask", [
    (7, [[1, 7], [], [], [3]], None), ("mask", [[1, 0], [], [], [3]], [[True, False], [], [], [True]]),
])  # fmt: skip
def test_what_stands_for_a_null_means_nothing(batches_of_blocks, nulls, expected, mask):
    child = pyarrow.array([1, None, 8, None, 3], "int32")
    lists = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, 2, 4, 4, 5], "int32"), child, mask=pyarrow.array([False, True, False, False])
    )
    [got] = batches_of_blocks([batch(x=lists)], batch_size=4, nulls={"x": nulls})
    assert plain(got["x"]) == expected and mask == (plain(got["x_mask"]) if "x_mask" in got else None)


@pytest.mark.parametrize("kind, rows, nulls, expected", [
    (fixed_list_of("int32", 2), [[1, None], None, [3, 4], [5, 6], [7, 8]], 9, [[1, 9], [9, 9], [3, 4]]),
    (WORDS, [["a", None], None, [], [], []], "", [["a", ""], [], []]),
    (WORDS, [["a", None], [], [], [], []], None, [["a", None], [], []]),
    (list_of(INTS), [[None, [1, None]], None, [[2]], [], []], 5, [[[], [1, 5]], [], [[2]]]),
    (POINT, [None, {"x": None, "name": None}, {"x": 1, "name": "a"}, None, None], "mask",
     [{"x": 0, "x_mask": False, "name": "", "name_mask": False}] * 2 +
     [{"x": 1, "x_mask": True, "name": "a", "name_mask": True}]),
])  # fmt: skip
def test_nulls(batches_of, kind, rows, nulls, expected):
    batches = batches_of(kind, rows, nulls=None if nulls is None else {"x": nulls})
    assert plain(batches[0]["x"]) == expected


def test_the_mask_of_fixed_lists_and_structs(batches_of):
    kind = pyarrow.struct([("f", fixed_list_of("int32", 2))])
    rows = [{"f": [1, None]}, {"f": None}, None, {"f": [2, 3]}, None]
    first = batches_of(kind, rows, nulls={"x": "mask"})[0]
    assert first["x_mask"].tolist() == [True, True, False]
    assert first["x"]["f"].tolist() == [[1, 0], [0, 0], [0, 0]]
    assert first["x"]["f_mask"].tolist() == [[True, False], [False, False], [False, False]]


def test_nulls_of_maps(batches_of):
    rows = [[(1, None)], None, [], [(2, 0.5)], []]
    batches = batches_of(SCORES, rows, nulls={"x": "mask", "x.values": 9})
    assert [row["values"] for row in all_of(batches)] == [[9], [], [], [0.5], []]
    assert all_of(batches, "x_mask") == [True, False, True, True, True]


@WAYS
def test_fields_as_columns(batches_of, way):
    kind = pyarrow.struct([("x", "int32"), ("inner", pyarrow.struct([("t", INTS)]))])
    rows = [{"x": i, "inner": {"t": [i] * i}} for i in range(4)] + [None]
    batches = batches_of(kind, rows, columns=["x.inner.t", "x.x"], nulls={"x.x": -1, "x.inner.t": 0}, **way)
    assert all_of(batches, "x.x") == [0, 1, 2, 3, -1] and all_of(batches, "x.inner.t") == [
        [],
        [1],
        [2, 2],
        [3, 3, 3],
        [],
    ]


@pytest.mark.parametrize("kind, rows, options, says", [
    (INTS, [[1, None]] * 5, {}, r"'x'.*of lists are null: nulls=\{'x': 0\} gives"),
    (INTS, [None] * 5, {}, r"'x'.*3 of 3 elements are null: nulls=\{'x': 0\} gives"),
    (WORDS, [None] * 5, {}, r"'x'.*nulls=\{'x': ''\}"),
    (POINT, [None] * 5, {}, r"'x.x'.*nulls=\{'x.x': 0\}"),
    (POINT, [{"x": 1, "name": "a"}] * 5, {"nulls": {"x.z": 0}}, "no field 'x.z' in the columns; there are x.name, x.x"),
    (list_of(pyarrow.decimal128(9, 2)), [[]] * 5, {}, "'x'.*cast the column to double"),
    (INTS, [[1]] * 5, {"ragged": {"x": "sparse"}}, "'x'.*'sparse' is for sparse vectors"),
    (pyarrow.int32(), [1] * 5, {"ragged": {"x": "pad"}}, "'x'.*ragged is for lists, text and bytes"),
])  # fmt: skip
def test_columns_that_need_an_option(batches_of, kind, rows, options, says):
    with pytest.raises(spark_supplier.ColumnError, match=says):
        batches_of(kind, rows, **options)


VECTORS = [
    {"size": 4, "indices": [0, 3], "values": [0.5, 1.5]}, {"size": 4, "indices": [], "values": []},
    {"size": 4, "indices": [1], "values": [2.5]}, {"size": 4, "indices": [2], "values": [3.5]},
    {"size": 4, "indices": [], "values": []},
]  # fmt: skip
DENSE = [[0.5, 0, 0, 1.5], [0] * 4, [0, 2.5, 0, 0], [0, 0, 3.5, 0], [0] * 4]


@pytest.mark.parametrize("way", [{}, {"zero_copy": True}, {"dtypes": {"x.values": torch.float32}}])
def test_sparse_vectors(batches_of, way):
    batches = batches_of(VECTOR, VECTORS, ragged={"x": "sparse"}, **way)
    assert all(each["x"].layout == torch.sparse_csr for each in batches)
    assert [row for each in batches for row in each["x"].to_dense().tolist()] == DENSE
    assert batches[0]["x"].dtype == (torch.float32 if "dtypes" in way else torch.float64)


def test_sparse_vectors_of_a_worker(batches_of):
    options = {"workers": 1, "ragged": {"x": "sparse"}, "transform": lambda batch: batch["x"].to_dense()}
    assert [row for each in batches_of(VECTOR, VECTORS, **options) for row in each.tolist()] == DENSE


@pytest.mark.skipif(hasattr(torch.multiprocessing.reductions, "reduce_sparse_tensor"), reason="this PyTorch can")
def test_sparse_tensors_do_not_leave_a_worker(batches_of):
    with pytest.raises(spark_supplier.SupplyError, match=r"passes no sparse tensors from the workers.*to_dense\(\)"):
        batches_of(VECTOR, VECTORS, workers=1, ragged={"x": "sparse"})


def test_sparse_vectors_that_are_null_or_of_other_sizes(batches_of):
    batches = batches_of(VECTOR, [VECTORS[0], None, *VECTORS[2:]], ragged={"x": "sparse"}, nulls={"x": 0})
    assert batches[0]["x"].to_dense().tolist() == DENSE[:3]


def test_sparse_vectors_of_other_sizes(batches_of):
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*sizes from 4 to 5"):
        batches_of(VECTOR, [*VECTORS[:2], {**VECTORS[0], "size": 5}, *VECTORS[:2]], ragged={"x": "sparse"})


@pytest.mark.parametrize("kind, rows, expected", [
    (INTS, [[1, 2], [], [3], [4, 5], [6]], [[4, 5], [6], [4, 5]]),
    (POINT, [{"x": i, "name": str(i)} for i in range(5)], [{"x": i, "name": str(i)} for i in (3, 4, 3)]),
    (list_of(WORDS), [[["a"]], [], [], [["b"], []], [["c", "d"]]], [[["b"], []], [["c", "d"]], [["b"], []]]),
])  # fmt: skip
def test_pad_repeats_them(batches_of, kind, rows, expected):
    *full, last = batches_of(kind, rows)
    assert all_of([*full, _rows_of(last, torch.tensor([0, 1, 0]))]) == rows[:3] + expected


@pytest.mark.parametrize("ragged", ["jagged", "list", "pad"])
def test_rows_of_a_collate_fn(batches_of, ragged):
    kind = pyarrow.struct([("x", "int32"), ("t", INTS)])
    rows = [{"x": i, "t": [i, i]} for i in range(5)]
    got = batches_of(kind, rows, ragged=ragged, collate_fn=lambda rows: [row["x"] for row in rows])
    assert [(int(row["x"]), row["t"].tolist()) for each in got for row in each] == [(i, [i, i]) for i in range(5)]


def test_rows_of_sparse_vectors(batches_of):
    got = batches_of(VECTOR, VECTORS, ragged={"x": "sparse"}, collate_fn=lambda rows: [row["x"] for row in rows])
    assert [row.to_dense().tolist() for each in got for row in each] == DENSE


@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_table_of_nested_columns(files, zero_copy):
    kind = pyarrow.struct([("x", "int32"), ("inner", pyarrow.struct([("t", INTS)]))])
    rows = [{"x": 1, "inner": {"t": [1, None]}}, None, {"x": 2, "inner": None}]
    options = {"columns": ["s.inner.t", "s", "s.x"], "batch_size": 2, "timeout": 30, "zero_copy": zero_copy}
    data = Dataset(files.folder, 0, **options)
    data._opened()
    task = Task(*files.paths)
    task.supply(batch(s=(rows, kind)))
    task.end_of_epoch()
    table = pyarrow.table(next(data.epochs()))
    assert table.to_pydict() == {"s.inner.t": [[1, None], None, None], "s": rows, "s.x": [1, None, 2]}
    del table
    data.abort("the test has ended")
    task.leave()


def test_half_precision(batches_of):
    batches = batches_of(pyarrow.float16(), [numpy.float16(i / 2) for i in range(5)], workers=1)
    assert batches[0]["x"].dtype == torch.float16 and all_of(batches) == [0, 0.5, 1, 1.5, 2]
