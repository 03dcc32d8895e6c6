"""Rows of ranks as DataFrames: what Supplier.run returns, and keys by which they must not be joined."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from spark_supplier.driver.cancellable import run_cancellable
from spark_supplier.driver.frame_checks import check_is_frame
from spark_supplier.driver.sessions import ClassicSession, session_of
from spark_supplier.driver.statistics import RunStatistics
from spark_supplier.result_schema import fields_of

if TYPE_CHECKING:
    from pyspark.mllib.linalg.distributed import DistributedMatrix

_log = logging.getLogger("spark_supplier")


@dataclass(frozen=True)
class RunResult:
    """value: what rank 0's call has returned. results: the rows of all ranks, which Spark reads where they are.

    statistics: how the time was spent, and what rank 0 reported: as Supplier.statistics.

    The rows take memory on the nodes of the ranks until release(results), or until the session ends (over
    Spark Connect, the server).
    """

    value: Any
    results: DataFrame
    statistics: RunStatistics


def java_matrix(data: Any) -> Any:
    """The JVM's object of a RowMatrix, IndexedRowMatrix, CoordinateMatrix or BlockMatrix; None: it is none of them."""
    wrapper = getattr(data, "_java_matrix_wrapper", None)
    return None if wrapper is None else wrapper._java_model


def release(df: DataFrame | DistributedMatrix) -> None:
    """Removes the files of all results that df reads, on all nodes. df: also a matrix of MLlib that came from ranks.

    Spark has copied nothing: neither df nor another DataFrame of these results can be computed afterwards, unless it is
    cached. Without this call, the files stay until the session ends; over Spark Connect, until the server ends. Raises
    RunError if df reads no result, or if a node does not answer.
    """
    matrix = java_matrix(df)
    if matrix is None:
        check_is_frame(df)
    session = session_of(df.sparkSession if matrix is None else df._java_matrix_wrapper._spark)
    session.check("the session of df")
    if matrix is None:
        released = df.write.format("supply").mode("append").option("release", "true")
        run_cancellable(session, released.save)
    else:
        assert isinstance(session, ClassicSession)
        run_cancellable(session, lambda: session.jvm.supply.linalg.ToMLlib.release(matrix))


# Nobody joins by a column of another type.
_KEYS = ("byte", "short", "integer", "long", "string", "binary", "date", "timestamp", "timestamp_ntz")


def keys_of(df: DataFrame, schema: str | None) -> list[str]:
    """The columns of df that a result of this schema has, and by which a program may join it."""
    written = {field[0] for field in fields_of(schema)} if schema else set()
    return [field.name for field in df.schema.fields if field.name in written and field.dataType.typeName() in _KEYS]


def warn_of_join_keys(keys: list[str]) -> None:
    """Warns of keys in the results that df may give to other rows when Spark computes it again."""
    _log.warning(
        "results: %s depends on the order in which Spark computes the rows of df (as monotonically_increasing_id() "
        "does after a shuffle). Spark may compute it again, in another order, also if df is cached: a join by it "
        "then pairs wrong rows. Instead of a join, name in results the columns of df that you need, without a "
        "type; or join by a key of the data",
        ", ".join(f"'{key}'" for key in keys),
    )
