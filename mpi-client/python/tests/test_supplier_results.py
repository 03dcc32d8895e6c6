"""Rows that ranks write come back from Supplier.run as a DataFrame: real Spark, real ranks."""

import gc
import os
import pathlib
import time

import pytest
from pyspark.ml.functions import array_to_vector
from pyspark.sql import functions
from pyspark.sql.types import StructType
from spark_supplier import RankError, Rows, RunError, Supplier

from supplier_session import only_classic, rows, session_fixture, shared_memory

spark = session_fixture(3)
RANKS, COUNT, LIMIT_SECONDS = 2, 1000, 60
SCHEMA = "id long not null, score double, name string"


@pytest.fixture
def run(spark, warm):
    def called(function, launcher="torch", **options):
        from spark_supplier import Mpirun

        of_rows = {"columns": ["id", "features"], "batch_size": 64, "uneven": "keep"}
        of_ranks = {"ranks": RANKS, "launcher": Mpirun() if launcher == "mpirun" else launcher}
        return warm(function, rows(spark, COUNT), **{"results": SCHEMA, **of_rows, **of_ranks, **options})

    called.folder = warm.folder  # type: ignore[attr-defined]
    return called


def predict(data, factor):
    with data.results() as out:
        for epoch in data.epochs():
            for batch in epoch:
                ids = batch["id"]
                out.write(
                    {"id": ids, "score": ids.double() * factor, "name": [f"row {number}" for number in ids.tolist()]}
                )
    return "predicted"


@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_predictions_come_back_and_join_the_input(run, spark, launcher):

    returned = run(predict, launcher, kwargs={"factor": 2.0})
    assert returned.value == "predicted"
    assert returned.rows.schema.simpleString() == "struct<id:bigint,score:double,name:string>"
    joined = rows(spark, COUNT).join(returned.rows, "id")
    for _ in range(2):
        found = joined.where("score = 2 * id and name = concat('row ', id) and features[0] = id")
        assert found.count() == COUNT == returned.rows.count()
    del joined, found
    returned.release()


def test_rows_are_read_after_other_runs(run):

    first = run(predict, kwargs={"factor": 1.0})
    second = run(predict, kwargs={"factor": 3.0})
    assert first.rows.where("score = id").count() == COUNT
    assert second.rows.where("score = 3 * id").count() == COUNT
    first.release()
    assert second.rows.count() == COUNT
    second.release()


@only_classic("a server of Spark Connect refers to a DataFrame only while it computes it")
def test_rows_go_when_no_frame_reads_them_any_more(run, spark):
    def left():
        gc.collect()
        spark._jvm.java.lang.System.gc()
        return [*pathlib.Path(run.folder).rglob("*.result")]

    some = run(predict, kwargs={"factor": 1.0}).rows.where("score >= 10")
    # What some is made of is gone, and some is computed now.
    assert len(left()) == RANKS and some.count() == COUNT - 10
    del some
    end = time.monotonic() + LIMIT_SECONDS
    while left() and time.monotonic() < end:
        time.sleep(0.1)
    assert left() == []


def test_a_result_is_released_once_and_by_its_block(run):
    with run(predict, kwargs={"factor": 1.0}) as found:
        assert repr(found).startswith("RunResult(value='predicted', rows=DataFrame[id: bigint")
        found.release()
    found.release()


def write_on_one_rank(data):
    if os.environ["RANK"] == "0":
        with data.results() as out:
            out.write({"id": [7], "score": [None], "name": ["ü"]})


def test_a_rank_that_writes_nothing_has_no_rows(run):

    returned = run(write_on_one_rank)
    assert [tuple(row) for row in returned.rows.collect()] == [(7, None, "ü")]
    returned.release()


def raise_while_writing(data):
    with data.results() as out:
        out.write({"id": [1], "score": [1.0], "name": ["a"]})
        raise RuntimeError("no luck")


def test_an_exception_while_writing_fails_the_call_and_leaves_nothing(run):
    with pytest.raises(RankError, match="no luck"):
        run(raise_while_writing)


def write_a_wrong_column(data):
    with data.results() as out:
        out.write({"id": ["one"], "score": [1.0], "name": ["a"]})


def test_a_wrong_column_is_named(run):
    with pytest.raises(RankError, match="'id'"):
        run(write_a_wrong_column)


def test_a_wrong_schema_is_refused_before_anything_starts(run):
    with pytest.raises(RunError, match="results is 'id lnog'"):
        run(predict, results="id lnog", kwargs={"factor": 1.0})


def test_a_struct_type_is_a_schema(run, spark):
    schema = rows(spark, 1).selectExpr("id", "cast(id as double) as score", "'' as name").schema
    assert isinstance(schema, StructType)
    returned = run(predict, results=schema, kwargs={"factor": 1.0})
    assert returned.rows.count() == COUNT
    returned.release()


@pytest.fixture(scope="module")
def table(spark):
    """A column of each type that ranks get, with nulls."""
    vector = array_to_vector(functions.expr("array(0D, id + 1D, 0D)"))
    return spark.range(0, COUNT, 1, 8).selectExpr(
        "id", "int(id % 7) as label", "smallint(id % 5) as small", "tinyint(-1) as byte", "id % 2 = 0 as even",
        "if(id % 5 = 0, null, concat('row ', id)) as name", "encode(string(id), 'UTF-8') as raw",
        "encode(repeat('x', int(id % 3)), 'UTF-8') as image", "encode('same', 'UTF-8') as same",
        "date_add(date'1969-12-30', int(id % 400)) as day", "timestamp_micros(id * 1000003) as moment",
        "timestamp_ntz'2026-01-01 00:00:00' as clock", "array(float(id), id / 2.0F) as features",
        "array(id, id + 1) as pair", "if(id % 3 = 0, null, id * 0.5D) as gap",
        "if(id = 7, null, array(id, 1L)) as holes", "id * 2 as `a b`",
        "if(id % 4 = 0, null, '') as nothing", "float(id) as unused",
        "named_struct('a b', id, 'c,d>', named_struct('e`f', array(id, 1L))) as odd",
        "array(timestamp_micros(id), timestamp_micros(-1L)) as moments", "array(array(current_date())) as days",
    ).withColumns({"sparse": vector, "within": functions.struct(vector.alias("a vector"))})  # fmt: skip


def copy_input(data):
    with data.results() as out:
        for batch in data:
            out.write(batch | {"score": batch["id"].double() * 2})


def test_columns_of_the_input_come_back_with_the_predictions(table):
    named = ", ".join(f"`{name}`" for name in table.columns if name != "unused")
    with shared_memory() as folder:
        returned = Supplier(ranks=RANKS, folder=folder, backend=None).run(
            copy_input,
            Rows(
                table, batch_size=64,
                ragged={"raw": "list", "image": "jagged", "sparse": "sparse", "within.a vector": "sparse"},
                nulls={"gap": "mask", "holes": "mask", "nothing": "mask"},
            ),
            results=f"{named}, score double not null",
        )  # fmt: skip
        wanted = table.drop("unused").selectExpr("*", "id * 2D as score")
        found = returned.rows
        vectors = found.selectExpr(
            "struct(3 as size, array(1) as indices, array(id + 1D) as values) as v", "sparse", "within"
        )
        assert vectors.where("v = sparse and v = within.`a vector`").count() == COUNT
        found, wanted = (frame.drop("sparse", "within") for frame in (found, wanted))
        assert found.dtypes == wanted.dtypes
        assert found.count() == COUNT and wanted.exceptAll(found).count() == 0
        returned.release()


def test_a_name_without_a_type_must_be_a_column_that_ranks_get(run):
    with pytest.raises(RunError, match="results is 'id, lable, score float': 'lable' has no type.*id, features"):
        run(predict, results="id, lable, score float", kwargs={"factor": 1.0})
    with pytest.raises(RunError, match="'id' has no type, so it must be a column of df that ranks get"):
        run(predict, results="id, score float", columns=["features"], kwargs={"factor": 1.0})
