"""The Spark side of test_engines: tables and plans of another engine than Spark's. The Python of build/venv runs it."""

import json
import sys
import tempfile
from typing import Any

from pyspark.sql import SparkSession

ROWS = 1000
FOLDER = tempfile.TemporaryDirectory(prefix="supply-test-")

# Each column of `n_` is null in some rows.
COLUMNS = """
    select id, id % 2 = 0 as flag, int(id * 65537) as number, cast(id as float) / 3 as single, sqrt(id) as root,
        concat('row ', repeat('ä', int(id % 7)), id) as text, cast(repeat('x', int(id % 11)) as binary) as bytes,
        date_add(date'1999-12-31', int(id)) as day, timestamp_micros(id * 1000003) as instant,
        cast(id - 500 as decimal(10, 2)) as price, cast(id - 500 as decimal(38, 5)) * -1000003 as large,
        if(id % 3 = 1, null, id % 2 = 0) as n_flag, if(id % 5 = 1, null, id) as n_long,
        if(id % 4 = 2, null, concat('text ', id % 3)) as n_text,
        if(id % 6 = 3, null, cast(id as decimal(38, 5))) as n_large
    from range(1, 1001, 1, 4)
"""


NESTED = [
    "*",
    "if(id % 5 = 0, null, sequence(0, int(id % 4))) as list",
    "if(id % 7 = 0, null, named_struct('one', id, 'two', if(id % 2 = 0, null, string(id)))) as struct",
    "array(named_struct('x', id, 'y', array(string(id), null))) as structs",
]


def iceberg(spark):
    return table(spark, "local.db.t", "iceberg", "'format-version'='2', 'write.delete.mode'='merge-on-read'")


def delta(spark):
    return table(spark, f"delta.`{FOLDER.name}/delta`", "delta", "'delta.enableDeletionVectors'='true'")


def table(spark, name, format, properties):
    """All rows but every third: 667. The deleted rows are still in the files."""
    spark.sql(f"create table {name} using {format} tblproperties ({properties}) as {COLUMNS}")
    spark.sql(f"delete from {name} where id % 3 = 0")
    return spark.table(name)


def parquet(spark):
    path = f"{FOLDER.name}/parquet"
    spark.sql(COLUMNS).selectExpr(*NESTED).write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def comet(spark):
    return parquet(spark)


def comet_computed(spark):
    """Comet computes with columns, and shuffles them."""
    return parquet(spark).selectExpr("id", "id + 1 as next", "root * 2 as twice", "text").where("id > 10")


FRAMES = {made.__name__: made for made in (iceberg, delta, comet, comet_computed)}


def prepare(spark, name):
    """Makes the frame. Answers with the plan whose batches are read, and with the rows."""
    made[name] = FRAMES[name](spark)
    module = getattr(getattr(spark._jvm.supply.rows, "ColumnarPlan$"), "MODULE$")
    columns = module.columns(made[name]._jdf.queryExecution().executedPlan())
    rows = [
        {column: bytes(value) if isinstance(value, bytearray) else value for column, value in row.asDict(True).items()}
        for row in made[name].orderBy("id").collect()
    ]
    return {
        "plan": columns.get().toString() if columns.isDefined() else None,
        "explain": made[name]._jdf.queryExecution().executedPlan().toString(),
        "rows": json.loads(json.dumps(rows, default=repr)),
    }


def write(spark, name, folder):
    writer = made[name].write.format("supply").mode("append").option("mapped-files", f"{folder}/mapped-files.conf")
    writer.option("named-pipes", f"{folder}/named-pipes.conf").save()
    return {}


made: dict[str, Any] = {}


def main():
    spark = SparkSession.builder.master("local[4]").getOrCreate()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = prepare(spark, **asked) if asked.pop("do") == "prepare" else write(spark, **asked)
        except Exception as error:
            answer = {"error": str(error)}
        print("answer " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
