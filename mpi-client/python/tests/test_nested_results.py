"""Results with lists, structs and maps: what a rank writes in any form is what a reader finds in the file."""

import datetime
import itertools
import pathlib
from functools import partial
from typing import Any

import numpy
import pyarrow
import pytest
import spark_supplier
from spark_supplier import _core
from spark_supplier.batch import Batch
from spark_supplier.forms import Forms
from spark_supplier.jagged import Jagged
from spark_supplier.result_schema import fields_of
from spark_supplier.results import ResultWriter

from result_file import abort_reason, read_result
from values import batch, received

INTS, FLOATS, WORDS = (pyarrow.list_(kind()) for kind in (pyarrow.int32, pyarrow.float32, pyarrow.string))
POINT = pyarrow.struct([("x", "int32"), ("name", "string")])
SCORES = pyarrow.map_(pyarrow.string(), pyarrow.float64())
ARROW = {
    "lists": pyarrow.array([[1, None], None, []], INTS),
    "large": pyarrow.array([[1], [], None], pyarrow.large_list(pyarrow.int64())),
    "lists of lists": pyarrow.array([[[0.5], []], None, [None, [1.5, 2.5]]], pyarrow.list_(FLOATS)),
    "words": pyarrow.array([["a", None], [], ["\u00e9"]], WORDS),
    "struct": pyarrow.array([{"x": 1, "name": None}, None, {"x": None, "name": "a"}], POINT),
    "structs": pyarrow.array([[{"x": 1, "name": "a"}], [], None], pyarrow.list_(POINT)),
    "map": pyarrow.array([[("a", 0.5)], None, [("b", None), ("c", 1.5)]], SCORES),
    "fixed": pyarrow.array([[1, None], None, [3, 4]], pyarrow.list_(pyarrow.int32(), 2)),
    "half": pyarrow.array([numpy.float16(0.5), None, numpy.float16(2)], pyarrow.float16()),
    "duration": pyarrow.array([1, None, 3], pyarrow.duration("us")),
    "time": pyarrow.array([datetime.time(1), None, datetime.time(2)], pyarrow.time64("ns")),
}
TABLE = pyarrow.table(ARROW)


@pytest.mark.parametrize("form", [TABLE, TABLE.to_batches()[0], pyarrow.concat_tables([TABLE, TABLE]).slice(3, 3)])
@pytest.mark.parametrize("schema", [None, TABLE.schema.set(1, pyarrow.field("large", pyarrow.list_(pyarrow.int64())))])
def test_arrow(written, form, schema):
    assert written(form, schema=schema).to_pydict() == TABLE.to_pydict()


def test_a_block_comes_back(pair, written):
    names = [name for name in ARROW if name not in ("large", "fixed")]
    block = received(pair, batch(**{name: ARROW[name] for name in names}))
    assert written(block).to_pydict() == TABLE.select(names).to_pydict()


def forms():
    """numpy, and torch if it is there."""
    yield numpy.array
    try:
        import torch
    except ImportError:
        return
    yield torch.tensor


@pytest.mark.parametrize("make", list(forms()))
def test_jagged_structs_and_cubes(written, make):
    jagged = Jagged(make([1, 2, 3]), make([0, 2, 2, 3]))
    table = written({
        "jagged": jagged,
        "nested": Jagged(Jagged(make([0.5, 1.5]), make([0, 1, 2])), make([0, 0, 2, 2])),
        "struct": {"x": make([1, 2, 3]), "t": jagged, "name": ["a", None, "c"]},
        "structs": Jagged({"x": make([1, 2])}, make([0, 1, 1, 2])),
        "cube": make([[[1, 2]], [[3, 4]], [[5, 6]]]),
        "flags": make([[True, False]] * 3),
        "rows": Jagged(make([[1, 2], [3, 4]]), make([0, 1, 1, 2])),
    })  # fmt: skip
    assert table.to_pydict() == {
        "jagged": [[1, 2], [], [3]], "nested": [[], [[0.5], [1.5]], []],
        "struct": [
            {"x": 1, "t": [1, 2], "name": "a"}, {"x": 2, "t": [], "name": None}, {"x": 3, "t": [3], "name": "c"},
        ],
        "structs": [[{"x": 1}], [], [{"x": 2}]], "cube": [[[1, 2]], [[3, 4]], [[5, 6]]],
        "flags": [[True, False]] * 3, "rows": [[[1, 2]], [], [[3, 4]]],
    }  # fmt: skip


def test_lists_of_python(written):
    values = {
        "lists": [[1, 2], None, [3]], "nulls": [[1, None], [], None], "words": [["a"], [], ["b", None]],
        "lists of lists": [[[0.5], []], [], None], "structs": [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}],
        "arrays": [numpy.arange(2), numpy.arange(0), numpy.arange(1)],
        "list of structs": [[{"x": 1}], [], [{"x": 2}, {"x": None}]],
    }  # fmt: skip
    table = written(values)
    assert table.to_pydict() == {**values, "arrays": [[0, 1], [], [0]]}


def test_tensors(written):
    import torch

    table = written({
        "half": torch.tensor([0.5, 1], dtype=torch.float16), "brain": torch.tensor([0.5, 1], dtype=torch.bfloat16),
        "brains": torch.ones(2, 2, dtype=torch.bfloat16), "lists": [torch.tensor([1.5]), torch.tensor([])],
        "jagged": Jagged(torch.ones(1, dtype=torch.bfloat16), torch.tensor([0, 1, 1])),
    })  # fmt: skip
    assert table.to_pydict() == {
        "half": [0.5, 1], "brain": [0.5, 1], "brains": [[1, 1]] * 2, "lists": [[1.5], []], "jagged": [[1], []],
    }  # fmt: skip
    kinds = [table.schema.field(name).type for name in ("half", "brain")]
    assert kinds == [pyarrow.float32()] * 2
    with pytest.raises(
        spark_supplier.ColumnError, match=r"column 'x' cannot be written: it is a tensor with torch.sparse_csr"
    ):
        written({"x": torch.ones(2, 2).to_sparse_csr()})


SPARK = (
    "id long not null, tokens array<int>, m map<string, double>, s struct<x:int, `a b`:array<array<float>>>, "
    "d array<decimal(9,2)>, flags array<boolean>"
)


def test_a_schema_as_spark_writes_it(written):
    values = {
        "id": [1, 2], "tokens": [[1, None], []], "m": [{"a": 0.5}, None], "s": [{"x": 1, "a b": [[0.5]]}, None],
        "flags": [[True], None],
    }  # fmt: skip
    table = written(values, schema=SPARK.replace("d array<decimal(9,2)>, ", ""))
    assert table.to_pydict() == {**values, "m": [[("a", 0.5)], None]}
    assert table.schema.field("s").type.field("x").type == pyarrow.int32()
    assert table.schema.field("tokens").type.value_type == pyarrow.int32()
    arrow = pyarrow.table(
        {"id": pyarrow.array([1]), "d": pyarrow.array([[1]], pyarrow.list_(pyarrow.decimal128(9, 2)))}
    )
    assert written(arrow, schema="id long, d array<decimal(9,2)>").to_pydict() == arrow.to_pydict()


def test_intervals_and_times(written):
    schema = "d interval day to second, t time(6), c varchar(5), many array<interval hour>, m interval year to month"
    assert fields_of(schema)[-1][1] == "tiM"
    spans, seconds = numpy.array([1, 2], "timedelta64[s]"), [datetime.timedelta(seconds=i) for i in (1, 2)]
    times = [datetime.time(1), datetime.time(0, 0, 2)]
    expected: dict[str, Any] = {"d": seconds, "t": times, "c": ["a", None], "many": [seconds, []], "m": [14, None]}
    jagged = Jagged(spans, numpy.array([0, 2, 2]))
    nanoseconds = numpy.array([3600 * 10**9, 2 * 10**9])
    months = numpy.ma.MaskedArray(numpy.int32([14, 0]), [False, True])
    first = {"d": spans, "t": nanoseconds, "c": ["a", None], "many": jagged, "m": months}
    assert written(first, expected, schema=schema).to_pydict() == {
        name: 2 * values for name, values in expected.items()
    }
    assert written({"d": seconds, "t": times}).to_pydict() == {"d": seconds, "t": times}


def test_maps_as_batches_have_them(written):
    keys, values = Jagged(["a", "b"], numpy.array([0, 1, 2])), Jagged(numpy.array([0.5, 1]), numpy.array([0, 1, 2]))
    table = written({"m": {"keys": keys, "values": values}}, schema="m map<string, double>")
    assert table.to_pydict() == {"m": [[("a", 0.5)], [("b", 1)]]}


@pytest.mark.parametrize(
    "kind", [INTS, pyarrow.list_(pyarrow.int32(), 2), pyarrow.list_(pyarrow.field("item", "int32", False), 2)]
)
@pytest.mark.parametrize("values", [
    numpy.array([[1, 2], [3, 4]], "int32"), [[1, 2], [3, 4]],
    Jagged(numpy.arange(5, dtype="int32"), numpy.array([1, 3, 5])),
    [numpy.array([1, 2], "int32"), numpy.array([3, 4], "int32")],
])  # fmt: skip
def test_lists_of_one_length_fit_any_list(written, kind, values):
    table = written({"x": values}, schema=pyarrow.schema({"x": kind}))
    assert table.to_pydict() == {"x": [[1, 2], [3, 4]]}


PAIR = pyarrow.list_(pyarrow.field("item", pyarrow.int32(), False), 2)
MASKED = numpy.ma.MaskedArray(numpy.int32([[1, 2], [3, 4], [5, 6]]), [[False, True], [True, True], [False, False]])


@pytest.mark.parametrize("schema", [
    None, "x array<int>", pyarrow.schema({"x": INTS}), pyarrow.schema({"x": pyarrow.list_(pyarrow.int32(), 2)}),
])  # fmt: skip
def test_a_masked_array_keeps_the_rest_of_the_row(written, schema):
    table = written({"x": MASKED}, {"x": MASKED[2:]}, schema=schema)
    assert table.to_pydict() == {"x": [[1, None], None, [5, 6], [5, 6]]}


def test_a_masked_array_keeps_the_nulls_of_its_times(written):
    times = numpy.ma.MaskedArray(["NaT", "2020-01-01", "2021-01-01"], [False, True, False], "datetime64[D]")
    table = written({"x": times, "lists": numpy.ma.stack([times, times], 1)})
    day = datetime.date(2021, 1, 1)
    assert table.to_pydict() == {"x": [None, None, day], "lists": [[None, None], None, [day, day]]}


def test_a_masked_cube(written):
    cube = numpy.ma.MaskedArray([[[1, 2]], [[3, 4]]], [[[False, True]], [[True, True]]])
    assert written({"x": cube}).to_pydict() == {"x": [[[1, None]], None]}


@pytest.mark.parametrize("kind", [INTS, pyarrow.list_(pyarrow.int32(), 2)])
def test_the_mask_of_a_field(written, kind):
    values, mask = numpy.int32([[1, 0], [0, 0], [2, 3]]), numpy.array([[True, False], [False, False], [True, True]])
    schema = pyarrow.schema({"x": pyarrow.struct({"f": kind})})
    table = written({"x": {"f": values, "f_mask": mask}}, schema=schema)
    assert table.to_pydict() == {"x": [{"f": [1, None]}, {"f": None}, {"f": [2, 3]}]}


# What `ragged` says, and the lists of each batch. Padding is null again with a mask, and so is a list of padding only.
RECEIVED = {
    "padded": ("pad", [[[1, 2]], [[1, None, 3], [4]]], [[1, 2], [1, None, 3], [4, None, None]]),
    "padded, then empty": ("pad", [[[1, 2]], [[], []]], [[1, 2], None, None]),
    "padded, first empty": ("pad", [[[]], [[1, None]]], [None, [1, None]]),
    "lists": ("list", [[[1, None], []], [[2]]], [[1, None], [], [2]]),
    "empty lists": ("list", [[[1, None]], [[], []]], [[1, None], [], []]),
    "lists of lists": ("list", [[[[1, None], []], [[2]]], [[[], []], []]], [[[1, None], []], [[2]], [[], []], []]),
    "padded lists of lists": ("pad", [[[[1, 2], [3]]], [[[], []]]], [[[1, 2], [3, None]], None]),
}  # fmt: skip


def as_received(form, lists):
    """A batch with lists of numbers, or of lists, in the column x, with its mask."""
    import torch
    from spark_supplier.batch import Batch
    from spark_supplier.forms import Forms

    def jagged(lists, make):
        inner = list(itertools.chain.from_iterable(lists))
        values = jagged(inner, make) if any(isinstance(value, list) for value in inner) else make(inner)
        return Jagged(values, torch.tensor([0, *itertools.accumulate(map(len, lists))]))

    numbers = jagged(lists, lambda values: torch.tensor([value or 0 for value in values], dtype=torch.int32))
    mask = jagged(lists, lambda values: torch.tensor([value is not None for value in values], dtype=torch.bool))
    return Forms(form, ["x"])(Batch({"x": numbers, "x_mask": mask}))


@pytest.fixture
def written_back(rank, files):
    """A function that writes batches with a received column x, as a function of Supplier.run. Returns what is read."""

    def write(schema, batches, nulls):
        with ResultWriter(partial(_core.Result, rank._pair), "scores", schema, ["x"], nulls) as out:
            for values in batches:
                out.write(values)
        path = pathlib.Path(f"{files.paths[0]}.scores.result")
        table = read_result(path)
        path.unlink()
        return table.to_pydict()["x"]

    return write


@pytest.mark.parametrize("name", RECEIVED)
@pytest.mark.parametrize("is_text", [True, False])
def test_padded_lists_have_their_nulls_again(written_back, name, is_text):
    form, lists, expected = RECEIVED[name]
    text, kind = ("array<array<int>>", pyarrow.list_(INTS)) if "lists of lists" in name else ("array<int>", INTS)
    schema = f"x {text}" if is_text else pyarrow.schema({"x": kind})
    assert written_back(schema, [as_received(form, each) for each in lists], {"x": "mask"}) == expected


def test_padded_lists_have_another_width_in_each_batch(written_back):
    lists: list[list[list[int]]] = [[[1, 2]], [[], []], [[3, 4, 5], [6]]]
    batches = [as_received("pad", each) for each in lists]
    for values in batches:
        del values["x_mask"]
    assert written_back("x array<int>", batches, {}) == [[1, 2], [], [], [3, 4, 5], [6, 0, 0]]


def test_lists_of_structs_come_back(written_back):
    import torch

    offsets = torch.tensor([0, 2, 2, 3])
    structs = {"a": torch.tensor([1, 0, 0]), "a_mask": torch.tensor([True, False, False]), "b": ["u", "v", ""]}
    mask = Jagged(torch.tensor([True, True, False]), offsets)
    batch = Batch({"x": Jagged(structs, offsets), "x_mask": mask})
    expected = [[{"a": 1, "b": "u"}, {"a": None, "b": "v"}], [], [None]]
    schema = "x array<struct<a:long, b:string>>"
    assert written_back(schema, [Forms("list", ["x"])(batch)], {"x": "mask"}) == expected
    del structs["b"]
    with pytest.raises(spark_supplier.ColumnError, match="a dict is no list: set ragged={'x': 'list'}"):
        written_back("x array<struct<a:long>>", [Forms("pad", ["x"])(batch)], {"x": "mask"})


@pytest.mark.parametrize("lists", [[[1, 2], None, [3, 4]], [numpy.array([2**53 + 1, 2]), None, numpy.array([3, 4])]])
def test_lists_of_one_length_with_a_null(written, lists):
    assert written({"x": lists}).to_pydict() == {"x": [None if row is None else [*row] for row in lists]}


REFUSED = {
    "lengths": ({"x": [[1], [2, 3]]}, pyarrow.list_(pyarrow.int32(), 2), "'x' .*lists of 1 to 2 values"),
    "field": ({"x": {"x": [1]}}, POINT, "column 'x' cannot be written as struct.*: its field 'name' is missing"),
    "more": ({"x": {"x": [1], "name": ["a"], "z": [1]}}, POINT, "no field 'z' in it"),
    "rows": ({"x": {"x": [1], "name": ["a", "b"]}}, POINT, "different numbers of values"),
    "type": ({"x": {"x": numpy.zeros(1), "name": ["a"]}}, POINT, "'x.x' has the type double, and the result has int32"),
    "in list": ({"x": [["a"]]}, INTS, "column 'x' has the type string, and the result has int32"),
    "empty": ({"x": [[], []]}, None, "all its lists are empty"),
    "map": ({"x": [[1]]}, SCORES, "as map.*: .1. is a list, not a dict"),
    "fraction": ({"x": [[1, 2], [2.5, 3.7]]}, INTS, "'x' has the type double, and the result has int32"),
    "range": ({"x": [[17, 2**40]]}, PAIR, "'x' cannot be written as int32: .*1099511627776"),
    "floats": ({"x": [numpy.array([1.5, 2])]}, PAIR, "'x' has the type double, and the result has int32"),
    "digits": ({"x": [["7", "8"]]}, PAIR, "'x' has the type string, and the result has int32"),
    "mixed": ({"x": [["a", 1]]}, None, "'x' cannot be written: Expected bytes, got a 'int' object"),
    "nulls": ({"x": MASKED}, PAIR, "'x' has a list with a null in it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_by_path(rank, files, name):
    values, kind, text = REFUSED[name]
    schema = None if kind is None else pyarrow.schema({"x": kind})
    with pytest.raises(spark_supplier.SupplyError, match=text), rank.results("scores", schema) as out:
        out.write(values)
    assert "Error: " in abort_reason(f"{files.paths[0]}.scores.result")
