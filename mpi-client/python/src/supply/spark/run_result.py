"""What Supplier.run returns if its ranks write rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class RunResult:
    """value: what rank 0's call has returned. results: the rows of all ranks, which Spark reads where they are.

    The rows take memory on the nodes of the ranks until supply.spark.release(results), or until the session ends.
    """

    value: Any
    results: DataFrame
