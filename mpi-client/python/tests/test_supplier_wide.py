"""Frames of many columns, with names of any text, go to ranks and come back: real Spark, real ranks."""

import pytest
from spark_supplier import Rows, RunError, Supplier

from supplier_session import session_fixture, shared_memory

spark = session_fixture(3)
RANKS = 2
NAMES = ["a.b", 'it\'s "quoted" `so`', "two\nlines\t", "\N{GRINNING FACE}", "n" * 128, "\u00fc" * 3000]


def echo(data):
    with data.results() as out:
        for epoch in data.epochs():
            for batch in epoch:
                out.write(dict(batch))


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def frame(spark, names, rows):
    from pyspark.sql import functions

    numbers = [(functions.col("id") * 0.5 + i).alias(name) for i, name in enumerate(names)]
    return spark.range(0, rows, 1, RANKS).select("id", *numbers)


@pytest.mark.parametrize("count, rows", [
    (400, 30), pytest.param(5000, 1000, marks=pytest.mark.long), pytest.param(10000, 10, marks=pytest.mark.long),
])  # fmt: skip
def test_columns_and_names_go_both_ways(spark, count, rows):
    names = NAMES + [f"column_{i}" for i in range(len(NAMES), count)]
    df = frame(spark, names, rows)
    with shared_memory() as folder:
        columns = ", ".join(map(quoted, df.schema.names))
        supplier = Supplier(ranks=RANKS, folder=folder)
        results = supplier.run(echo, Rows(df, batch_size=64, uneven="keep"), results=columns)
        assert results.rows.schema.names == df.schema.names
        found = sorted(map(tuple, results.rows.collect()))
        assert found == [(row, *(row * 0.5 + i for i in range(count))) for row in range(rows)]
        results.release()


def test_a_row_that_is_larger_than_a_block_names_the_sizes_to_set(spark):
    # The long one is the first row of the last partition.
    df = spark.range(0, 4, 1, RANKS).selectExpr("id", "repeat('x', if(id = 2, 40000, 1)) as text")
    with shared_memory() as folder:
        supplier = Supplier(ranks=RANKS, folder=folder, ring="32KiB", block="8KiB")
        with pytest.raises(
            RunError,
            match=r"8192 bytes, and needs one of 4\d{4}, of which column 'text' has 4\d{4}: .* block=65536 ring=131072",
        ):
            supplier.run(echo, Rows(df, batch_size=4, uneven="keep"), results="id, text")
        supplier = Supplier(ranks=RANKS, folder=folder, ring=131072, block=65536)
        results = supplier.run(echo, Rows(df, batch_size=4, uneven="keep"), results="id, text")
        assert sorted(len(row.text) for row in results.rows.collect()) == [1, 1, 1, 40000]
        results.release()
