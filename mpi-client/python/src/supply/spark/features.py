"""The feature columns of an estimator, as one column of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions

from supply.errors import RunError
from supply.spark.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def features_array(df: DataFrame, columns: str | Sequence[str]) -> Column:
    """An array<float> of each row. columns: one of vectors, of arrays or of numbers, or several of numbers."""
    names = [columns] if isinstance(columns, str) else list(columns)
    require_columns(df, names)
    kind = df.schema[names[0]].dataType
    if len(names) == 1 and kind.simpleString() == "vector":
        # In Spark 3.5 it imports pandas, which only estimators need.
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(functions.col(quoted(names[0])), "float32")
    if len(names) == 1 and kind.typeName() == "array":
        return functions.col(quoted(names[0])).cast("array<float>")
    return functions.array(*(functions.col(quoted(name)).cast("float") for name in names))


def require_columns(df: DataFrame, names: Sequence[str]) -> None:
    """Raises RunError if one of these columns is missing."""
    missing = [f"'{name}'" for name in names if name not in df.columns]
    if missing:
        raise RunError(f"df has no column {', '.join(missing)} (columns of df: {', '.join(df.columns)})")
