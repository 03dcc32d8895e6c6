"""Rows of ranks as DataFrames: what Supplier.run returns, and keys by which they must not be joined."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from supply.result_schema import fields_of
from supply.spark.cancellable import run_cancellable
from supply.spark.checks import check_running, refuse_connect
from supply.spark.matrix import java_matrix

if TYPE_CHECKING:
    from pyspark.mllib.linalg.distributed import DistributedMatrix

_log = logging.getLogger("supply.spark")


@dataclass(frozen=True)
class RunResult:
    """value: what rank 0's call has returned. results: the rows of all ranks, which Spark reads where they are.

    The rows take memory on the nodes of the ranks until supply.spark.release(results), or until the session ends.
    """

    value: Any
    results: DataFrame


def release(df: DataFrame | DistributedMatrix) -> None:
    """Removes the files of all results that df reads, on all nodes. df: also a matrix of MLlib that came from ranks.

    Spark has copied nothing: neither df nor another DataFrame of these results can be computed afterwards, unless it is
    cached. Without this call, the files stay until the session ends. Raises RunError if df reads no result, or if a
    node does not answer.
    """
    refuse_connect(
        df, "release()", "because it asks the driver's JVM: over Spark Connect, the files of results stay until the "
        "server ends, or until supply-clean --unread-results removes them on each node",
    )  # fmt: skip
    matrix = java_matrix(df)
    context = df.sparkSession.sparkContext if matrix is None else df._java_matrix_wrapper._sc
    check_running(context, "the session of df")
    if matrix is None:
        run_cancellable(context, lambda: context._jvm.supply.api.Results.release(df._jdf))
    else:
        run_cancellable(context, lambda: context._jvm.supply.linalg.ToMLlib.release(matrix))


# Nobody joins by a column of another type.
_KEYS = ("byte", "short", "integer", "long", "string", "binary", "date", "timestamp", "timestamp_ntz")


def warn_of_join_keys(df: Any, schema: str) -> None:
    """Warns of keys in the results that df may give to other rows when Spark computes it again."""
    context = df.sparkSession.sparkContext
    dependent = set(context._jvm.supply.api.OrderDependence.columns(df._jdf))
    written = {field[0] for field in fields_of(schema)}
    keys = [
        f"'{field.name}'"
        for field in df.schema.fields
        if field.name in dependent & written and field.dataType.typeName() in _KEYS
    ]
    if keys:
        _log.warning(
            "results: %s depends on the order in which Spark computes the rows of df (as monotonically_increasing_id() "
            "does after a shuffle). Spark may compute it again, in another order, also if df is cached: a join by it "
            "then pairs wrong rows. Instead of a join, name in results the columns of df that you need, without a "
            "type; or join by a key of the data",
            ", ".join(keys),
        )
