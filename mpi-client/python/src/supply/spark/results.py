"""Results of ranks as DataFrames: spark.read.format("supply").option("results", NAME)."""

from __future__ import annotations

from pyspark.sql import DataFrame

from supply.spark.cancellable import run_cancellable
from supply.spark.checks import check_running


def release(df: DataFrame) -> None:
    """Removes the files of all results that df reads, on all nodes.

    Spark has copied nothing: neither df nor another DataFrame of these results can be computed afterwards, unless it is
    cached. Without this call, the files go when no DataFrame refers to them, or when the session ends. Raises
    RunError if df reads no result, or if a node does not answer.
    """
    context = df.sparkSession.sparkContext
    check_running(context, "the session of df")
    run_cancellable(context, lambda: context._jvm.supply.Results.release(df._jdf))
