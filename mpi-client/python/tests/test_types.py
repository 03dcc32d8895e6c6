"""Every type of type_table.py goes from Spark to a rank and back: in blocks, in batches, and as a result."""

import datetime
import pathlib
import tempfile
import threading
from typing import Any

import pyarrow
import pyspark
import pytest
import spark_supplier
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier
from spark_supplier.driver.results import release

from connect_server import connect_server
from layout import TYPES
from pair_files import PairFiles
from supplier_session import shared_memory
from type_table import HALF, KINDS, kinds

# The first of four partitions has no rows.
ROWS, FIRST, LIMIT_SECONDS = 16, 4, 60
IDS = range(FIRST, ROWS)
OF_VERSION = kinds(pyspark.__version__)
SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.timeType.enabled": "true"}
_stopped: list[Any] = []


@pytest.fixture(scope="module", params=["classic", pytest.param("connect", marks=pytest.mark.long)])
def spark(request):
    if request.param == "classic":
        builder = (
            SparkSession.builder.master("local[3]").config("spark.jars", spark_supplier.jars()).config(map=SETTINGS)
        )
        session = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
        yield session
        session.stop()
        return
    pytest.importorskip("pyspark.sql.connect.session", reason="no gRPC in this environment")
    with connect_server("local[3]", spark_supplier.jars(), **SETTINGS) as server:
        session = spark_supplier.session(remote=server.remote)
        _stopped.append(session)
        yield session
        session.stop()


def is_null(i, number):
    return i % 3 == number % 3


def frame(spark, has_nulls):
    """A column of each kind, `id`, and in `keys` the same without nulls."""
    from pyspark.ml.linalg import DenseMatrix, Vectors
    from pyspark.sql import functions

    def row(i):
        return i, Vectors.dense([i, 2]), Vectors.sparse(3, {1: i}), DenseMatrix(2, 3, [i, 4, 2, 5, 3, 6])

    vectors = spark.createDataFrame(list(map(row, range(ROWS))), ["id", "dense", "sparse", "matrix"])
    columns = [
        f"if(id % 3 = {number % 3}, null, {kind.sql}) as {name}" if has_nulls else f"{kind.sql} as {name}"
        for number, (name, kind) in enumerate(OF_VERSION.items())
    ]
    df = spark.range(0, ROWS, 1, 4).where(f"id >= {FIRST}").join(functions.broadcast(vectors), "id")
    return df.selectExpr("id", *columns)


def expected(name, has_nulls, convert=lambda value: value):
    number = [*OF_VERSION].index(name)
    return [None if has_nulls and is_null(i, number) else convert(OF_VERSION[name].value(i)) for i in IDS]


class Seen:
    """What ranks and Spark have had."""

    def __init__(self):
        self.arrow: dict[str, Any] = {}
        self.types: dict[str, str] = {}
        self.batches: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.result_types: dict[str, str] = {}


@pytest.fixture(scope="module")
def seen(spark):
    """All of it, without and with nulls."""
    both = Seen(), Seen()
    for has_nulls, seen in enumerate(both):
        df = frame(spark, has_nulls)
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="supply-test-") as folder:
            through_blocks(spark, df, folder, seen)
        with shared_memory() as folder:
            through_batches(df, folder, seen, has_nulls)
    return both


NULLS = pytest.mark.parametrize("has_nulls", [False, True], ids=["full", "nulls"])


def through_blocks(spark, df, folder, seen):
    """This process is the rank, and writes the blocks back as they are."""
    names = [name for name, kind in OF_VERSION.items() if kind.arrow is not None]
    files = PairFiles(pathlib.Path(folder), "1MiB", "256KiB")
    options = {"mapped-files": f"{folder}/mapped-files.conf", "named-pipes": f"{folder}/named-pipes.conf"}
    writer = df.select("id", *names).write.format("supply").mode("append").options(half=",".join(HALF), **options)
    failures: list[Exception] = []

    def write():
        try:
            writer.save()
        except Exception as error:
            failures.append(error)

    writing = threading.Thread(target=write)
    writing.start()
    rows: list[dict[str, Any]] = []
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s, s.results("blocks") as out:
        while (block := s.next_block()) is not None:
            out.write(block)
            batch = pyarrow.record_batch(block)
            seen.types = {field.name: str(field.type) for field in batch.schema}
            rows += batch.to_pylist()
            del batch
    writing.join()
    assert failures == []
    rows.sort(key=lambda row: row["id"])
    seen.arrow = {name: [row[name] for row in rows] for name in names}
    result = spark.read.format("supply").options(**options, results="blocks").load()
    take_result(result, names, seen)
    release(result)


def take_result(result, names, seen):
    rows = result.orderBy("id").selectExpr(*(f"{OF_VERSION[name].seen.format(name)} as {name}" for name in names))
    found = rows.collect()
    for name, kind in result.dtypes:
        if name != "id":
            seen.result_types[name] = kind
            seen.results[name] = [plain(row[name]) for row in found]


def plain(value):
    """A value of Spark's rows as that of Arrow."""
    if isinstance(value, pyspark.sql.Row):
        return {name: plain(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        # Spark's maps come in any order.
        return sorted((key, plain(part)) for key, part in value.items())
    if isinstance(value, list):
        return [plain(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def take_batches(data):
    """The rank's function: its batches, which it also writes back."""
    batches = []
    with data.results() as out:
        for batch in data:
            batches.append({name: described(values) for name, values in batch.items()})
            out.write(batch)
    return batches


def described(values):
    """Form and elements of the values of a batch."""
    if isinstance(values, torch.Tensor):
        return str(values.dtype).removeprefix("torch."), values.tolist()
    if isinstance(values, dict):
        return "dict", {name: described(part) for name, part in values.items()}
    if isinstance(values, list):
        return "list", values
    inner, bounds = described(values.values)[1], values.offsets.tolist()
    return "jagged", [inner[begin:end] for begin, end in zip(bounds, bounds[1:])]


def through_batches(df, folder, seen, has_nulls):
    """A rank of Supplier.run."""
    names = [name for name, kind in OF_VERSION.items() if kind.batch is not None]
    nulls = dict.fromkeys(names, "mask") if has_nulls else None
    returned = Supplier(ranks=1, folder=folder, backend=None).run(
        take_batches,
        Rows(
            df.select("id", *names),
            batch_size=ROWS,
            nulls=nulls,
            ragged={"bytes": "list"},
            dtypes=dict.fromkeys(HALF, torch.float16),
        ),
        results=", ".join(["id", *names]),
    )
    seen.batches = returned.value
    before = dict(seen.results)
    take_result(returned.rows, names, seen)
    # As those of the blocks.
    seen.results.update(before)
    returned.release()


@NULLS
@pytest.mark.parametrize("name", KINDS)
def test_a_block_has_the_values_and_the_type(seen, name, has_nulls):
    seen = seen[has_nulls]
    if name not in OF_VERSION or OF_VERSION[name].arrow is None:
        pytest.skip("no such type")
    found = [one.replace(tzinfo=None) if isinstance(one, datetime.datetime) else one for one in seen.arrow[name]]
    assert found == expected(name, has_nulls)
    assert seen.types[name].replace(" not null", "") == OF_VERSION[name].arrow


@NULLS
@pytest.mark.parametrize("name", KINDS)
def test_a_result_has_the_values_and_the_type(seen, name, has_nulls):
    seen = seen[has_nulls]
    if name not in OF_VERSION:
        pytest.skip("no such type")
    assert seen.results[name] == expected(name, has_nulls)
    assert seen.result_types[name] == OF_VERSION[name].result


EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def in_batch(value):
    """A value of Arrow as batches have it: numbers for times."""
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // MICROSECOND
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    if isinstance(value, datetime.timedelta):
        return value // MICROSECOND
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    return value


def elements(form, values):
    """Each element of a column that a rank has described."""
    if form != "dict":
        return values
    if {"keys", "values"} <= set(values):
        return [[*zip(*pair)] for pair in zip(values["keys"][1], values["values"][1])]
    parts = {name: elements(*part) for name, part in values.items() if not name.endswith("_mask")}
    return [dict(zip(parts, row)) for row in zip(*parts.values())]


@NULLS
@pytest.mark.parametrize("name", KINDS)
def test_a_batch_has_the_values_and_the_type(seen, name, has_nulls):
    if name not in OF_VERSION or OF_VERSION[name].batch is None:
        pytest.skip("no such type, or batches cannot have it")
    wanted, form = expected(name, has_nulls, in_batch), OF_VERSION[name].batch
    found: list[Any] = []
    ids: list[int] = []
    for batch in seen[has_nulls].batches:
        kind, values = batch[name]
        assert kind == (form if isinstance(form, str) else form.__name__)
        ids += batch["id"][1]
        mask: tuple[str, Any] = batch[f"{name}_mask"] if has_nulls else ("", [True] * len(batch["id"][1]))
        is_of_lists, there = mask
        while isinstance(there[0], list):
            there = [all(row) for row in there]
        found += zip(elements(kind, values), there)
    found = [found[ids.index(i)] for i in IDS]
    if is_of_lists == "jagged":
        # A list that is null is empty, and its mask, too.
        assert [values for values, _ in found] == [value or [] for value in wanted]
    else:
        assert [values if is_there else None for values, is_there in found] == wanted


def test_each_row_of_the_table_has_a_column():
    types = [f"{row['spark']} |" for row in TYPES if row["spark"] != "–"]
    rows = {kind.row for kind in KINDS.values()} | {SPARSE}
    assert [each for each in types if sum(map(each.startswith, rows)) != 1] == []
    assert [row for row in rows if not any(each.startswith(row) for each in types)] == []


SPARSE = "vector, with"


def take_sparse(data):
    batches: list[Any] = []
    with data.results() as out:
        for batch in data:
            vectors = batch["sparse"]
            assert vectors.layout == torch.sparse_csr
            batches += zip(batch["id"].tolist(), vectors.to_dense().tolist(), vectors.crow_indices().diff().tolist())
            out.write({"id": batch["id"], "sum": vectors.to_dense().sum(1)})
    return batches


def test_sparse_vectors_arrive_without_their_zeros(spark):
    df = frame(spark, has_nulls=False).select("id", "sparse")
    with shared_memory() as folder:
        returned = Supplier(ranks=1, folder=folder, backend=None).run(
            take_sparse, Rows(df, ragged={"sparse": "sparse"}), results="id, sum double"
        )
        assert sorted(returned.value) == [(i, [0, i, 0], 1) for i in IDS]
        assert [row["sum"] for row in returned.rows.orderBy("id").collect()] == [*IDS]
        returned.release()
