"""Results: what a rank writes in any form is what a reader finds in the file."""

import concurrent.futures
import datetime
import decimal
import io
import os
import pathlib
import time

import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pytest
import spark_supplier
from spark_supplier import _core

from result_file import abort_reason, read_result
from values import numbers

ROWS = 3
ARROW = {
    "flag": pyarrow.array([True, None, False]),
    "text": pyarrow.array(["a", None, "\u00e9t\u00e9"]),
    "large": pyarrow.array(["x", "", None], pyarrow.large_string()),
    "view": pyarrow.array(["short", None, "a text of more than twelve bytes"], pyarrow.string_view()),
    "bytes": pyarrow.array([b"", b"\0\xff", None]),
    "day": pyarrow.array([datetime.date(2026, 1, 2), None, datetime.date(1969, 12, 31)]),
    "instant": pyarrow.array([0, 1, None], pyarrow.timestamp("us", "UTC")),
    "clock": pyarrow.array([0, 1, None], pyarrow.timestamp("us")),
    "money": pyarrow.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pyarrow.decimal128(10, 2)),
    "vector": pyarrow.array([[1.0, 2.0], None, [3.0, 4.0]], pyarrow.list_(pyarrow.float32(), 2)),
    **{kind: pyarrow.array([1, None, 3], kind) for kind in ("int8", "uint16", "int32", "int64", "float32", "float64")},
}
TABLE = pyarrow.table(ARROW)
INDICES = pyarrow.field("item", pyarrow.dictionary("int32", "float64"), nullable=False)


class StreamOnly:
    """A table that only streams, as duckdb's."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("form", [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), StreamOnly(TABLE)])
def test_arrow(written, form):
    table = written(form)
    assert table.to_pydict() == TABLE.to_pydict()
    assert table.schema.field("instant").type == pyarrow.timestamp("us", "UTC")


def test_a_slice_of_a_table_in_many_blocks(written, rank):
    table = pyarrow.table({"id": range(20000), "text": [str(i) * (i % 7) for i in range(20000)]})
    part = table.slice(17, 15001)
    read = written(part, part.slice(3, 1))
    assert read["id"].num_chunks > 5
    assert read.to_pydict() == pyarrow.concat_tables([part, part.slice(3, 1)]).to_pydict()


def test_a_stream_of_which_another_thread_reads_in_python(written):
    rows = io.BytesIO(b"id\n" + b"".join(b"%d\n" % i for i in range(20000)))
    reader = pyarrow.csv.open_csv(rows, pyarrow.csv.ReadOptions(block_size=1000))
    assert written(reader)["id"].to_pylist() == list(range(20000))


def test_threads_write_into_one_result(rank, files):
    table = pyarrow.table({"id": range(5000)})
    forms = [StreamOnly(table), table.to_batches()[0]] * 2
    with rank.results("scores", "id long") as out, concurrent.futures.ThreadPoolExecutor(len(forms)) as threads:
        list(threads.map(lambda form: [out.write(form) for _ in range(100)], forms))
    read = read_result(f"{files.paths[0]}.scores.result")["id"]
    assert pyarrow.compute.value_counts(read).field("counts").to_pylist() == [400] * 5000


def test_threads_write_the_first_batch_together(rank, files, monkeypatch):
    begin = _core.Result

    def begin_slowly(*arguments):
        time.sleep(0.2)
        return begin(*arguments)

    monkeypatch.setattr(_core, "Result", begin_slowly)
    batches = [0, "1", 2, "3"]
    with rank.results("scores") as out, concurrent.futures.ThreadPoolExecutor(len(batches)) as threads:
        writing = [threads.submit(out.write, {"id": [value]}) for value in batches]
    errors = [each.exception() for each in writing]
    # The first one says which type the others must have.
    assert [type(error) for error in errors if error] == [spark_supplier.ColumnError] * 2
    kept = [value for value, error in zip(batches, errors) if not error]
    assert (
        kept in ([0, 2], ["1", "3"])
        and sorted(read_result(f"{files.paths[0]}.scores.result")["id"].to_pylist()) == kept
    )


def test_a_result_is_aborted_while_threads_write(rank, files):
    out = rank.results("scores", "id long")
    batch = pyarrow.record_batch({"id": range(5000)})

    def write():
        while True:
            out.write(batch)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        writing = [threads.submit(write) for _ in range(2)]
        while out.rows < 50000:
            pass
        out.abort("enough")
        for each in writing:
            with pytest.raises(spark_supplier.SupplyError, match="sealed or aborted"):
                each.result()
    assert abort_reason(f"{files.paths[0]}.scores.result") == "enough"


def test_polars(written):
    frame = polars.DataFrame(
        {"id": [1, 2, 3], "text": ["a", None, "more than twelve bytes"], "flag": [True, False, None]}
    )
    vectors = polars.Series("vector", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], polars.Array(polars.Float32, 2))
    assert written(frame.with_columns(vectors)).to_pylist() == frame.with_columns(vectors).to_dicts()


def test_pandas(written):
    frame = pandas.DataFrame({
        "id": [1, 2, 3],
        "score": numpy.float32([0.5, 1, 2]),
        "text": ["a", None, "c"],
        "maybe": pandas.array([1, None, 3], "Int32"),
        "flag": pandas.array([True, None, False], "boolean"),
        "name": pandas.array(["x", None, "z"], "string"),
        "when": pandas.to_datetime(["2026-01-02 03:04:05", None, "1969-12-31 00:00:00"]),
        "where": pandas.to_datetime(["2026-01-02 03:04:05", None, "1969-12-31 00:00:00"]).tz_localize("Europe/Berlin"),
        "kind": pandas.Categorical(["a", "b", None]),
    }, index=[7, 8, 9])  # fmt: skip
    table = written(frame)
    assert table.drop_columns(["when", "where"]).to_pydict() == {
        "id": [1, 2, 3], "score": [0.5, 1, 2], "text": ["a", None, "c"], "maybe": [1, None, 3],
        "flag": [True, None, False], "name": ["x", None, "z"], "kind": ["a", "b", None],
    }  # fmt: skip
    assert table["when"].to_pylist() == [datetime.datetime(2026, 1, 2, 3, 4, 5), None, datetime.datetime(1969, 12, 31)]
    assert table.schema.field("where").type == pyarrow.timestamp("us", "Europe/Berlin")
    assert table["where"].cast("int64").to_pylist() == [1767319445000000, None, -90000000000]


def test_dicts_of_arrays_and_lists(written):
    table = written({
        "id": numpy.arange(ROWS),
        "small": numpy.array([1, 2, 3], ">u2"),
        "every_second": numpy.arange(2 * ROWS)[::2],
        "flag": numpy.array([True, False, True]),
        "vector": numpy.arange(6, dtype="float64").reshape(ROWS, 2),
        "turned": numpy.arange(6, dtype="int8").reshape(2, ROWS).T,
        "day": numpy.array(["2026-01-02", "NaT", "1969-12-31"], "datetime64[D]"),
        "time": numpy.array(["2026-01-02T03:04:05", "NaT", "1969-12-31"], "datetime64[s]"),
        "masked": numpy.ma.MaskedArray([1, 2, 3], [False, True, False]),
        "text": ["a", None, "c"], "bytes": [b"a", bytearray(b"b"), None],
        "ints": [1, None, 3], "floats": [0.5, 1, None],
        "bools": [True, None, False], "lists": [[1, 2], None, (3, 4)], "strings": numpy.array(["x", "yy", ""]),
        "dates": [datetime.date(2026, 1, 2), None, datetime.date(1969, 12, 31)],
        "times": [datetime.datetime(2026, 1, 2, 3), None, datetime.datetime(1969, 12, 31)],
    })  # fmt: skip
    assert table.to_pydict() == {
        "id": [0, 1, 2], "small": [1, 2, 3], "every_second": [0, 2, 4], "flag": [True, False, True],
        "vector": [[0, 1], [2, 3], [4, 5]], "turned": [[0, 3], [1, 4], [2, 5]],
        "day": [datetime.date(2026, 1, 2), None, datetime.date(1969, 12, 31)],
        "time": [datetime.datetime(2026, 1, 2, 3, 4, 5), None, datetime.datetime(1969, 12, 31)],
        "masked": [1, None, 3],
        "text": ["a", None, "c"], "bytes": [b"a", b"b", None], "ints": [1, None, 3], "floats": [0.5, 1.0, None],
        "bools": [True, None, False], "lists": [[1, 2], None, [3, 4]], "strings": ["x", "yy", ""],
        "dates": [datetime.date(2026, 1, 2), None, datetime.date(1969, 12, 31)],
        "times": [datetime.datetime(2026, 1, 2, 3), None, datetime.datetime(1969, 12, 31)],
    }  # fmt: skip
    assert not table.schema.field("id").nullable
    assert table.schema.field("ints").nullable


def test_tensors(written):
    import torch

    gradients = torch.ones(ROWS, 2, requires_grad=True) * 2
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64)
    tensors = {str(kind): torch.arange(ROWS).to(kind) for kind in kinds}
    table = written({**tensors, "flag": torch.tensor([True, False, True]), "vector": gradients})
    for kind in kinds:
        assert table[str(kind)].to_pylist() == [0, 1, 2]
    assert table["flag"].to_pylist() == [True, False, True]
    assert table["vector"].to_pylist() == [[2, 2]] * ROWS


def test_a_schema_of_arrow_or_as_spark_writes_it(written):
    text = "id long NOT NULL, `a name` string, vector array<float>, amount decimal(10, 2), at: timestamp, raw binary"
    batch = pyarrow.table({
        "id": pyarrow.array([1, 2]), "a name": ["x", None],
        "vector": pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.float32(), 2)),
        "amount": pyarrow.array([None, decimal.Decimal("1.25")], pyarrow.decimal128(10, 2)),
        "at": pyarrow.array([0, 1], pyarrow.timestamp("us", "Europe/Berlin")), "raw": [b"", b"x"],
    })  # fmt: skip
    table = written(batch.select(reversed(batch.column_names)), schema=text)
    assert table.column_names == batch.column_names
    assert [field.nullable for field in table.schema] == [False, True, True, True, True, True]
    assert table["a name"].to_pylist() == ["x", None]
    assert table.schema.field("at").type == pyarrow.timestamp("us", "UTC")
    again = written({name: batch[name].to_pylist() for name in ("id", "a name")}, schema="id int, `a name` string")
    assert again.schema.field("id").type == pyarrow.int32()
    assert written({"raw": numpy.zeros((2, 3), "uint8")}, schema=pyarrow.schema({"raw": "binary"}))["raw"][
        1
    ].as_py() == bytes(3)


@pytest.mark.parametrize("schema", ["id long, vector array<float>", pyarrow.schema({"id": "int64"})])
def test_no_rows_are_an_empty_result(written, schema):
    assert written(schema=schema).num_rows == 0


REFUSED = {
    "missing": ({"id": [1]}, "column 'score' is missing"),
    "unknown": ({"id": [1], "score": [0.5], "more": [1]}, "no column 'more'"),
    "length": ({"id": [1, 2], "score": [0.5]}, "'id' 2, 'score' 1"),
    "type": ({"id": numpy.zeros(1, "int32"), "score": [0.5]}, "'id' has the type int32, and the result has int64"),
    "value": ({"id": ["x"], "score": [0.5]}, "column 'id' has the type string, and the result has int64"),
    "range": ({"id": [2**63], "score": [0.5]}, "'id' cannot be written as int64: Python int too large"),
    "null": ({"id": [None], "score": [0.5]}, "column 'id' is not nullable.*row 0"),
    "list": ({"id": numpy.zeros((1, 2), "uint8"), "score": [1]}, "'id' cannot be written as int64: it has lists"),
    "half": ({"id": [1], "score": numpy.zeros(1, "float16")}, "'score' has the type float, and the result has double"),
    "dimensions": ({"id": [1], "score": numpy.zeros((1, 1, 1))}, "'score' cannot be written as double: it has lists"),
    "no batch": (5, "int is no batch"),
    "no column": ({"id": 1, "score": [0.5]}, "column 'id'.*int is no array"),
    "large": ({"id": [1], "score": [0.5], "text": ["x" * 20000]}, "'text' has 20000 bytes.*block="),
    "array": (pyarrow.array([1]), "record batches"),
    "arrow type": (pyarrow.table({"id": [1.5], "score": [0.5]}), "column 'id' has the type 'l'.*'g': cast it"),
    "two of a name": (pandas.DataFrame([[1, 2]], columns=["id", "id"]), "two columns of one name"),
    "series": (pandas.Series([1]), "Series is no batch"),
    "nanoseconds": (pyarrow.table({"id": pyarrow.array([1], pyarrow.timestamp("ns")), "score": [0.5]}), "'id'.*tsn:"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_batch_that_does_not_fit_is_refused_by_column(rank, files, name):
    batch, text = REFUSED[name]
    schema = "id long not null, score double" + (", text string" if name == "large" else "")
    with pytest.raises(spark_supplier.SupplyError, match=text), rank.results("scores", schema) as out:
        out.write(batch)
    path = pathlib.Path(f"{files.paths[0]}.scores.result")
    assert not path.exists()
    assert "Error: " in abort_reason(path)
    pathlib.Path(f"{path}.unsealed").unlink()


SECONDS = numpy.array([10**15, 0], "M8[s]")
# What the type of a column cannot hold.
CHANGED = [
    ("float", [1e300], "1e.300 is no float"),
    ("float", [None, -1e39], "-1e.39 is no float"),
    ("float", [16777217], "column 'x' cannot be written as float: .*16777217"),
    ("array<double>", [[1, 2**53 + 1]], "'x' cannot be written as double: .*9007199254740993"),
    ("date", [datetime.datetime(2026, 1, 2, 3)], "2026-01-02T03.* has a time of day"),
    ("date", [None, pandas.Timestamp("2026-01-02 00:00:01")], "has a time of day"),
    ("date", ["2026-01-02T12:00"], "column 'x' cannot be written as date.*: .* has a time of day"),
    ("date", numpy.array([2**31], "M8[D]"), "a day does not fit into 32 bits"),
    ("timestamp", SECONDS, "does not fit into 64 bits of microseconds"),
    ("timestamp_ntz", SECONDS[:1].astype("M8[ms]"), "does not fit into 64 bits of microseconds"),
    ("interval day to second", -SECONDS.view("m8[s]"), "does not fit into 64 bits of microseconds"),
]


@pytest.mark.parametrize(("kind", "values", "text"), CHANGED)
def test_values_are_refused_and_not_changed(rank, kind, values, text):
    with pytest.raises(spark_supplier.ColumnError, match=text), rank.results("scores", f"x {kind}") as out:
        out.write({"x": values})


def test_values_that_the_type_of_the_column_holds(written):
    table = written(
        {"f": [0.1, float("inf"), None, 2**24], "d": [datetime.datetime(2026, 1, 2), "2026-01-03", None, "1969-12-31"]},
        schema="f float, d date",
    )
    assert table["f"].to_pylist() == [float(numpy.float32(0.1)), float("inf"), None, 2.0**24]
    assert [str(day) for day in table["d"].to_pylist()] == ["2026-01-02", "2026-01-03", "None", "1969-12-31"]


def test_lists_of_a_schema_in_text_may_have_any_length(written):
    batches = [{"x": [[1, 2], [3, 4]]}, {"x": [[1, 2, 3]]}, {"x": numpy.int64([[5], [6]])}, {"x": [[], None]}]
    expected = [[1, 2], [3, 4], [1, 2, 3], [5], [6], [], None]
    assert written(*batches, schema="x array<long>")["x"].to_pylist() == expected
    times = numpy.array([[0, 1], [2, 3]])
    table = written({"x": times}, {"x": [[numpy.datetime64(4, "us")]]}, schema="x array<timestamp>")
    assert table["x"].cast(pyarrow.list_(pyarrow.int64())).to_pylist() == [[0, 1], [2, 3], [4]]


def test_a_refused_batch_leaves_the_rows_before_it(rank, files):
    with rank.results("scores", "id long") as out:
        out.write({"id": [1]})
        with pytest.raises(spark_supplier.SupplyError, match="missing"):
            out.write({})
        with pytest.raises(spark_supplier.ColumnError, match="all its values"):
            rank.results("other").write({"id": [None]})
        out.write({"id": [2]})
        assert out.rows == 2
    with pytest.raises(spark_supplier.SupplyError, match="sealed or aborted"):
        out.write({"id": [3]})
    path = pathlib.Path(f"{files.paths[0]}.scores.result")
    assert read_result(path)["id"].to_pylist() == [1, 2]
    path.unlink()


@pytest.mark.parametrize("schema", [None, "id long", "vector array<float>"])
def test_an_exception_aborts_with_its_text(rank, files, schema):
    with pytest.raises(ZeroDivisionError), rank.results("scores", schema):
        raise ZeroDivisionError("the model is gone")
    assert abort_reason(f"{files.paths[0]}.scores.result") == "ZeroDivisionError: the model is gone"


def test_nothing_written_without_a_schema_is_an_error(rank, files):
    with pytest.raises(spark_supplier.SupplyError, match="pass schema="), rank.results("scores"):
        pass
    assert "pass schema=" in abort_reason(f"{files.paths[0]}.scores.result")


def test_a_result_that_is_dropped_says_so(rank, files):
    rank.results("scores", "id long")
    assert "did not seal" in abort_reason(f"{files.paths[0]}.scores.result")


def test_schemas_that_are_wrong_are_named(rank):
    for schema, text in (
        ("id longer", "column 'id' has the type 'longer'"), ("id", "'id' is no column"), (5, "int is no schema"),
        ("m array<thing>", "column 'm' has the type 'thing'"),
        ("m struct<a:map<int>>", "'m.a' has the type 'map<int>'"),
        (pyarrow.schema({"d": pyarrow.dictionary("int8", "string")}), "column 'd'.*dictionary"),
        (pyarrow.schema({"d": pyarrow.list_(INDICES, 2)}), "column 'd.item'.*dictionary"),
        ("id long, id int", "two columns 'id'"), ("", "0 columns"),
    ):  # fmt: skip
        with pytest.raises(spark_supplier.SupplyError, match=text):
            rank.results("scores", schema)
    with pytest.raises(spark_supplier.SupplyError, match="A-Z a-z 0-9 _ -"):
        rank.results("a.b", "id long")


def test_a_forked_child_leaves_the_result_of_its_parent(rank, files):
    out = rank.results("scores", "id long")
    child = os.fork()
    if child == 0:
        try:
            out.write({"id": [1]})
        except spark_supplier.SupplyError as error:
            del out
            os._exit(0 if "num_workers=0" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with out:
        out.write({"id": [1]})
    assert read_result(f"{files.paths[0]}.scores.result").num_rows == 1


def test_a_data_set_has_results_and_they_outlive_it(dataset, files):
    made = dataset([6])
    out = made.results("scores")
    with made:
        for batch in made:
            out.write({"x": batch["x"], "twice": 2 * batch["x"]})
    with out:
        pass
    read = read_result(f"{files.paths[0]}.scores.result")
    assert read.to_pydict() == {"x": list(range(6)), "twice": list(range(0, 12, 2))}


def test_the_next_opening_removes_the_results(open_pair, files):
    rank, task = open_pair()
    with rank.results("scores", "x long") as out:
        out.write(numbers(0))
    rank.abort("the test opens it again")
    assert pathlib.Path(f"{files.paths[0]}.scores.result").exists()
    task.leave = lambda: None
    open_pair()
    assert not pathlib.Path(f"{files.paths[0]}.scores.result").exists()


def test_a_folder_of_its_own(open_pair, files, tmp_path):
    rank, _ = open_pair(results_folder=tmp_path / "results")
    with rank.results("scores") as out:
        out.write({"id": [1]})
    assert read_result(tmp_path / "results" / f"{files.paths[0].name}.scores.result").num_rows == 1


def test_a_program_that_only_writes_needs_no_pair(files):
    with spark_supplier.ranks.create_results("scores", config=files.folder, local_rank=0) as out:
        out.write({"id": numpy.arange(3)})
    assert not any(path.exists() for path in files.paths), "no pair is opened"
    path = pathlib.Path(f"{files.paths[0]}.scores.result")
    assert read_result(path).to_pydict() == {"id": [0, 1, 2]}
    with pytest.raises(spark_supplier.SupplyError, match=r"scores.result .* is sealed.*supply-clean"):
        spark_supplier.ranks.create_results("scores", "id long", files.folder, 0)
    path.unlink()


def test_an_exception_aborts_a_result_without_a_pair(files):
    with (
        pytest.raises(ValueError, match="no model"),
        spark_supplier.ranks.create_results("scores", None, files.folder, 0),
    ):
        raise ValueError("no model")
    path = f"{files.paths[0]}.scores.result"
    assert "no model" in abort_reason(path)
    pathlib.Path(f"{path}.unsealed").unlink()
