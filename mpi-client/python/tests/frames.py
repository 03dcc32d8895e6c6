"""The Spark side of test_dataframes: writes the DataFrames that its stdin names. The Python of build/venv runs it."""

import json
import pathlib
import sys
import tempfile

import pyarrow
from pyspark.sql import SparkSession

ROWS, PARTITIONS = 1000, 4
TEST_LMDB = pathlib.Path(__file__).resolve().parents[3] / "build" / "digits" / "test_lmdb"

EVERY_TYPE = """
    id, id % 3 = 0 as flag, cast(id % 100 as tinyint) as tiny, cast(id * 31 as smallint) as small,
    cast(id * 65537 as int) as number, cast(id as float) / 3 as single, sqrt(id) as root,
    concat('row ', repeat('ä', int(id % 7)), id) as text,
    cast(concat('bytes ', repeat('x', int(id % 11))) as binary) as bytes, date_add(date'1999-12-31', int(id)) as day,
    timestamp_micros(id * 1000003) as instant, cast(timestamp_micros(id * 999983) as timestamp_ntz) as clock,
    cast(id - 500 as decimal(10, 2)) as price, cast(id - 500 as decimal(38, 5)) * -1000003 as large,
    transform(sequence(1, 4), i -> cast(i * id as float)) as vector, transform(sequence(1, 3), i -> i + id) as longs
"""

# Columns with others within them: lists of any length, which are empty or null in some rows, structs, maps; and all of
# these within each other.
NESTED = """
    id, sequence(1, id % 4) as tokens, if(id % 5 = 0, array(), sequence(1L, id % 3 + 1)) as empties,
    if(id % 3 = 0, null, sequence(1, id % 4)) as lists_or_null,
    transform(sequence(1, id % 4), i -> if(i = 2, null, cast(i as double))) as numbers_or_null,
    transform(sequence(1, 3), i -> i > id % 5) as flags, transform(sequence(1, id % 3), i -> repeat('ä', i)) as words,
    transform(sequence(1, id % 3), i -> cast(i as decimal(10, 2))) as prices,
    transform(sequence(1, id % 3), i -> sequence(1, i)) as lists_of_lists,
    transform(sequence(1, id % 3 + 1), i -> transform(sequence(1, 4), j -> cast(j * i as float))) as boxes,
    struct(id as x, concat('p', id) as name, struct(id % 2 = 0 as even) as inner) as point,
    if(id % 4 = 0, null, struct(nullif(id, -1) as x, sequence(1, nullif(id, -1) % 3) as list)) as struct_or_null,
    struct(cast(null as int) as a, cast(null as string) as b) as nothing,
    map('a', id, repeat('b', int(id % 3)) || 'b', id + 1) as counts, cast(map() as map<string, int>) as no_entries,
    if(id % 6 = 0, null, map(id, sequence(1, id % 3))) as lists_by_key,
    transform(sequence(1, id % 3), i -> struct(i as at, concat('w', i) as word)) as spans,
    cast(array() as array<int>) as always_empty, cast(null as array<string>) as always_null,
    cast('x' as char(3)) as padded
"""

FOLDER = tempfile.TemporaryDirectory(prefix="supply-test-")

# Each column is null in some rows, and not in the same rows as its neighbour.
NULLABLE = ", ".join(
    f"if(id % {5 + i} = {i % 5}, null, {name}) as {name}"
    for i, name in enumerate(
        ["flag", "tiny", "number", "root", "text", "bytes", "day", "instant", "price", "large", "vector"]
    )
)


def frame(spark, name):
    everything = spark.range(0, ROWS, 1, PARTITIONS).selectExpr(*split(EVERY_TYPE))
    if name == "every-type":
        return everything
    if name == "nullable":
        return everything.selectExpr("id", *split(NULLABLE))
    if name in ("parquet", "orc"):
        path = f"{FOLDER.name}/{name}"
        everything.selectExpr("id", "number % 5 as few", *split(NULLABLE)).write.mode("overwrite").format(name).save(
            path
        )
        return spark.read.format(name).load(path)
    if name == "cached":
        # Spark's cache has columns of these types only.
        names = ("flag", "tiny", "small", "number", "single", "root")
        nullable = [f"if(id % 3 = {i % 3}, null, {name}) as {name}_or_null" for i, name in enumerate(names)]
        return everything.selectExpr("id", *names, *nullable).cache()
    if name == "nested":
        return everything.selectExpr(*split(NESTED))
    if name == "nested-parquet":
        everything.selectExpr(*split(NESTED)).write.mode("overwrite").parquet(f"{FOLDER.name}/{name}")
        return spark.read.parquet(f"{FOLDER.name}/{name}")
    if name == "nested-cached":
        return everything.selectExpr(*split(NESTED)).cache()
    if name == "numbers":
        return everything.select("id", "root")
    if name == "empty":
        return everything.where("id < 0").select("id", "text")
    if name == "intervals":
        return everything.selectExpr("id", "make_interval(1) as span", "array(struct(null as none)) as within")
    if name == "uneven-lists":
        return everything.selectExpr("id", "sequence(1, if(id < 900, 2, 1)) as list")
    if name == "shuffled":
        return everything.repartition(3, "tiny").select("id", "text")
    if name == "indeterminate":
        # The partition of a row depends on the order in which rows leave the first shuffle.
        spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
        return everything.groupBy("tiny").count().repartition(3)
    if name == "lmdb":
        return spark.read.format("lmdb").option("partitions", 3).load(str(TEST_LMDB))
    raise ValueError(name)


def split(expressions):
    """Splits at the commas outside of parentheses."""
    depth, parts = 0, [""]
    for char in expressions:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def write(spark, name, folder, rows, options):
    data = frame(spark, name)
    if rows:
        expected = data.orderBy("id").toArrow()
        with pyarrow.OSFile(rows, "wb") as sink, pyarrow.ipc.new_file(sink, expected.schema) as file:
            file.write_table(expected)
    writer = data.write.format("supply").mode("append").option("mapped-files", f"{folder}/mapped-files.conf")
    writer.option("named-pipes", f"{folder}/named-pipes.conf").options(**options).save()


def main():
    spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
    for line in sys.stdin:
        answer = {}
        try:
            write(spark, **json.loads(line))
        except Exception as error:
            answer["error"] = str(error)
        print("answer " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
