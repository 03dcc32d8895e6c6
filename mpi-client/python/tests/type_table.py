"""Columns of every type that goes from Spark to ranks and back, for each row of proto/types.tsv."""

import datetime
import decimal
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from layout import TYPES


class Kind(NamedTuple):
    """A column.

    row: how Spark's type begins in its row of the table.
    sql: makes the column of `id`.
    value: what Arrow has for an `id`. The batch has numbers for times.
    arrow: Arrow's type, whatever may be null. None: pyarrow has none.
    batch: the type of tensors; list, "jagged", dict; None: batches cannot have it.
    result: Spark's type of a result.
    seen: an expression over the column of the result; its value is that of Arrow.
    """

    row: str
    sql: str
    value: Callable[[int], Any]
    arrow: str | None
    batch: Any
    result: str
    seen: str = "{}"


def _days(i: int) -> datetime.date:
    return datetime.date(1999, 12, 31) + datetime.timedelta(i)


def _micros(micros: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)


def _half(number: float) -> float:
    return float(struct.unpack("e", struct.pack("e", number))[0])


KINDS = {
    "flag": Kind("boolean", "id % 2 = 0", lambda i: i % 2 == 0, "bool", "bool", "boolean"),
    "tiny": Kind("tinyint", "tinyint(5 - id)", lambda i: 5 - i, "int8", "int8", "tinyint"),
    "small": Kind("smallint", "smallint(id * -31)", lambda i: -31 * i, "int16", "int16", "smallint"),
    "number": Kind("int |", "int(id * 65537)", lambda i: 65537 * i, "int32", "int32", "int"),
    "large": Kind("bigint", "id * -9876543210", lambda i: -9876543210 * i, "int64", "int64", "bigint"),
    "single": Kind("float |", "float(id / 4D)", lambda i: i / 4, "float", "float32", "float"),
    "wide": Kind("double", "id / 3D", lambda i: i / 3, "double", "float64", "double"),
    "half": Kind("float, double, with", "float(id / 3D)", lambda i: _half(i / 3), "halffloat", "float16", "float"),
    "halves": Kind(
        "float, double, with",
        "array(id / 3D, -1e6D)",
        lambda i: [_half(i / 3), float("-inf")],
        "fixed_size_list<item: halffloat>[2]",
        "float16",
        "array<float>",
    ),
    "half_lists": Kind(
        "float, double, with",
        "transform(sequence(0, id % 2), i -> id / 3D)",
        lambda i: [_half(i / 3)] * (i % 2 + 1),
        "list<item: halffloat>",
        "jagged",
        "array<float>",
    ),
    "price": Kind(
        "decimal",
        "cast(id - 5 as decimal(10, 2))",
        lambda i: decimal.Decimal(i - 5),
        "decimal128(10, 2)",
        None,
        "decimal(10,2)",
    ),
    "sum": Kind(
        "decimal",
        "cast(id - 5 as decimal(38, 5)) * -1000003",
        lambda i: decimal.Decimal(-1000003 * (i - 5)),
        "decimal128(38, 5)",
        None,
        "decimal(38,5)",
    ),
    "text": Kind(
        "string;", "concat('ä', repeat('x', int(id % 4)), '')", lambda i: "ä" + "x" * (i % 4), "string", list, "string"
    ),
    "blank": Kind("string;", "''", lambda i: "", "string", list, "string"),
    "padded": Kind("string;", "cast('x' as char(3))", lambda i: "x", "string", list, "string"),
    "short": Kind("string;", "cast('xy' as varchar(2))", lambda i: "xy", "string", list, "string"),
    "bytes": Kind("binary", "encode(string(id % 10), 'UTF-8')", lambda i: b"%d" % (i % 10), "binary", list, "binary"),
    "day": Kind("date", "date_add(date'1999-12-31', int(id))", _days, "date32[day]", "int32", "date"),
    "instant": Kind(
        "timestamp ",
        "timestamp_micros(id * 1000003)",
        lambda i: _micros(1000003 * i),
        "timestamp[us, tz=UTC]",
        "int64",
        "timestamp",
        "cast({} as timestamp_ntz)",
    ),
    "clock": Kind(
        "timestamp_ntz",
        "cast(timestamp_micros(id * -999983) as timestamp_ntz)",
        lambda i: _micros(-999983 * i),
        "timestamp[us]",
        "int64",
        "timestamp_ntz",
    ),
    "vector": Kind(
        "array, ",
        "array(float(id), 1.5F)",
        lambda i: [i, 1.5],
        "fixed_size_list<item: float>[2]",
        "float32",
        "array<float>",
    ),
    "box": Kind(
        "array, ",
        "array(array(id, 1L), array(2L, id), array(0L, 0L))",
        lambda i: [[i, 1], [2, i], [0, 0]],
        "fixed_size_list<item: fixed_size_list<item: int64>[2]>[3]",
        "int64",
        "array<array<bigint>>",
    ),
    "flags": Kind(
        "array, ",
        "array(id > 5, true)",
        lambda i: [i > 5, True],
        "fixed_size_list<item: bool>[2]",
        "bool",
        "array<boolean>",
    ),
    "tokens": Kind(
        "array |",
        "sequence(1, int(id % 3) + 1)",
        lambda i: [*range(1, i % 3 + 2)],
        "list<item: int32>",
        "jagged",
        "array<int>",
    ),
    "words": Kind(
        "array |",
        "transform(sequence(0, id % 3), i -> repeat('ä', int(i)))",
        lambda i: ["ä" * j for j in range(i % 3 + 1)],
        "list<item: string>",
        list,
        "array<string>",
    ),
    "deep": Kind(
        "array |",
        "transform(sequence(1, id % 3 + 1), i -> sequence(i, 3))",
        lambda i: [[*range(j, 4)] for j in range(1, i % 3 + 2)],
        "list<item: list<item: int64>>",
        "jagged",
        "array<array<bigint>>",
    ),
    "empty_first": Kind(
        "array |",
        "if(id < 8, array(), array(id))",
        lambda i: [] if i < 8 else [i],
        "list<item: int64>",
        "jagged",
        "array<bigint>",
    ),
    "always_empty": Kind(
        "array |", "cast(array() as array<double>)", lambda i: [], "list<item: double>", "jagged", "array<double>"
    ),
    "point": Kind(
        "struct",
        "named_struct('x', id, 'name', string(id), 'in', named_struct('even', id % 2 = 0))",
        lambda i: {"x": i, "name": str(i), "in": {"even": i % 2 == 0}},
        "struct<x: int64, name: string, in: struct<even: bool>>",
        dict,
        "struct<x:bigint,name:string,in:struct<even:boolean>>",
    ),
    "lists": Kind(
        "struct",
        "named_struct('t', sequence(0, id % 2))",
        lambda i: {"t": [*range(i % 2 + 1)]},
        "struct<t: list<item: int64>>",
        dict,
        "struct<t:array<bigint>>",
    ),
    "counts": Kind(
        "map",
        "map(concat('a', id), id, 'b', -1L)",
        lambda i: [(f"a{i}", i), ("b", -1)],
        "map<string, int64>",
        dict,
        "map<string,bigint>",
    ),
    "no_entries": Kind(
        "map", "cast(map() as map<int, double>)", lambda i: [], "map<int32, double>", dict, "map<int,double>"
    ),
    "dense": Kind(
        "vector of", "dense", lambda i: [i, 2.0], "fixed_size_list<item: double>[2]", "float64", "array<double>"
    ),
    "sparse": Kind(
        "vector of", "sparse", lambda i: [0, i, 0], "fixed_size_list<item: double>[3]", "float64", "array<double>"
    ),
    "matrix": Kind(
        "matrix",
        "matrix",
        lambda i: [[i, 2, 3], [4, 5, 6]],
        "fixed_size_list<item: fixed_size_list<item: double>[3]>[2]",
        "float64",
        "array<array<double>>",
    ),
    "collated": Kind("string with", "concat('Ä', id) collate UTF8_LCASE", lambda i: f"Ä{i}", "string", list, "string"),
    "span": Kind(
        "interval day",
        "make_dt_interval(id, 0, 0, -0.000001)",
        lambda i: datetime.timedelta(i, 0, -1),
        "duration[us]",
        "int64",
        "interval day to second",
    ),
    "hours": Kind(
        "interval day",
        "interval '3' hour * id",
        lambda i: datetime.timedelta(hours=3 * i),
        "duration[us]",
        "int64",
        "interval day to second",
    ),
    "months": Kind(
        "interval year",
        "make_ym_interval(0, int(id))",
        lambda i: i,
        None,
        "int32",
        "interval year to month",
        "int(cast({} as interval month))",
    ),
    "json": Kind(
        "variant",
        """parse_json(concat('{"a":[1,null,"ä"],"id":', id, '}'))""",
        lambda i: f'{{"a":[1,null,"ä"],"id":{i}}}',
        "string",
        list,
        "string",
    ),
    "time": Kind(
        "time(",
        "make_time(int(id), 30, 1.5)",
        lambda i: datetime.time(i, 30, 1, 500000),
        "time64[ns]",
        "int64",
        "time(6)",
    ),
}

# Whose numbers are rounded.
HALF = ["half", "halves", "half_lists"]


def kinds(spark_version: str) -> dict[str, Kind]:
    """Those of a version of Spark."""

    def since(kind: Kind) -> list[int]:
        [row] = (row for row in TYPES if f"{row['spark']} |".startswith(kind.row))
        return [*map(int, row["since"].split("."))]

    version = [*map(int, spark_version.split(".")[:2])]
    return {name: kind for name, kind in KINDS.items() if since(kind) <= version}
