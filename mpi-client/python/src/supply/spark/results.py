"""Results of ranks as DataFrames: spark.read.format("supply").option("results", NAME)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from supply.spark.cancellable import run_cancellable
from supply.spark.checks import check_running
from supply.spark.mllib import java_matrix

if TYPE_CHECKING:
    from pyspark.mllib.linalg.distributed import DistributedMatrix


def release(df: DataFrame | DistributedMatrix) -> None:
    """Removes the files of all results that df reads, on all nodes. df: also a matrix of MLlib that came from ranks.

    Spark has copied nothing: neither df nor another DataFrame of these results can be computed afterwards, unless it is
    cached. Without this call, the files stay until the session ends. Raises RunError if df reads no result, or if a
    node does not answer.
    """
    matrix = java_matrix(df)
    context = df.sparkSession.sparkContext if matrix is None else df._java_matrix_wrapper._sc
    check_running(context, "the session of df")
    if matrix is None:
        run_cancellable(context, lambda: context._jvm.supply.Results.release(df._jdf))
    else:
        run_cancellable(context, lambda: context._jvm.supply.linalg.ToMLlib.release(matrix))
