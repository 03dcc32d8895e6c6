"""The feature columns of an estimator, as one column of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from supply.errors import RunError
from supply.spark.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

INTEGERS = ("byte", "short", "integer", "long", "boolean")
NUMBERS = (*INTEGERS, "float", "double", "decimal")
# How much of a row an error shows.
_SHOWN = 200


class Features:
    """featuresCol of a DataFrame.

    size: of each row, or None if it is not known. name: for messages. alias: of the column of arrays.
    """

    def __init__(self, df: DataFrame, columns: str | Sequence[str], size: int | None = None) -> None:
        names = [columns] if isinstance(columns, str) else list(columns)
        require_columns(df, names, "featuresCol")
        self.name = ", ".join([*names[:3], "…"] if len(names) > 3 else names)
        # Spark's messages name it.
        self.alias = names[0] if len(names) == 1 else "the features"
        kind = df.schema[names[0]].dataType
        if len(names) == 1 and kind.simpleString() == "vector":
            # In Spark 3.5 it imports pandas, which only estimators need.
            from pyspark.ml.functions import vector_to_array

            vector = functions.col(quoted(names[0]))
            # It refuses nulls in words of its own.
            self.array = functions.when(vector.isNotNull(), vector_to_array(vector, "float32"))
            # VectorAssembler says it.
            found = df.schema[names[0]].metadata.get("ml_attr", {}).get("num_attrs")
        elif len(names) == 1 and _is_array_of_numbers(kind):
            self.array = functions.col(quoted(names[0])).cast("array<float>")
            found = None
        else:
            self._require_numbers(df, names)
            self.array = functions.array(*(functions.col(quoted(name)).cast("float") for name in names))
            found = len(names)
        if None not in (size, found) and size != found:
            raise RunError(f"featuresCol '{self.name}' has {found} numbers a row, and the model was trained on {size}")
        self.size = found if size is None else size

    def of_first_row(self, df: DataFrame) -> int:
        """The size of the first row that has one, which Spark computes."""
        row = df.where(self.is_valid()).select(functions.size(self.array)).first()
        if row is None:
            raise RunError(f"featuresCol '{self.name}' has no row without a null or NaN")
        return int(row[0])

    def is_valid(self) -> Column:
        """Whether a row has an array of the size, without nulls and NaN."""
        # Null for an array that is null or has a null.
        has_nan = functions.array_contains(self.array, functions.lit(float("nan")).cast("float"))
        valid = ~functions.coalesce(has_nan, functions.lit(True))
        return valid if self.size is None else valid & (functions.size(self.array) == self.size)

    def or_error(self) -> Column:
        """The array; a row that is not valid ends Spark's job."""
        what = "has a null or NaN" if self.size is None else f"does not have {self.size} numbers without null and NaN"
        return checked(self.array, self.is_valid(), f"featuresCol '{self.name}'", what, shown(self.array))

    def or_nan(self) -> Column:
        """The array, with NaN for nulls, and for all numbers of a row that has none or another number of them."""
        nan = functions.lit(float("nan")).cast("float")
        filled = functions.transform(self.array, lambda value: functions.coalesce(value, nan))
        is_whole = functions.coalesce(functions.size(self.array) == self.size, functions.lit(False))
        return functions.when(is_whole, filled).otherwise(functions.array_repeat(nan, self.size or 0))

    def _require_numbers(self, df: DataFrame, names: Sequence[str]) -> None:
        for name in names:
            kind = df.schema[name].dataType
            if kind.typeName() not in NUMBERS:
                raise RunError(
                    f"featuresCol names '{name}', which is {kind.simpleString()}: it must be of numbers, or the only "
                    "column, of arrays of numbers or of vectors. VectorAssembler makes one vector of columns"
                )


def checked(value: Column, valid: Column, name: str, what: str, row: Column) -> Column:
    """The value; the first row that is not valid ends Spark's job. row: what the error shows of it."""
    text = functions.concat(
        functions.lit(f"{name} {what} in the row "), row,
        functions.lit(": correct it, or set handleInvalid to 'skip', which leaves such rows out"),
    )  # fmt: skip
    return functions.when(valid, value).otherwise(functions.raise_error(text))


def shown(value: Column) -> Column:
    """A column as text, for an error."""
    return functions.coalesce(functions.substring(value.cast("string"), 1, _SHOWN), functions.lit("null"))


def require_columns(df: DataFrame, names: Sequence[str], param: str) -> None:
    """Raises RunError if one of these columns is missing."""
    missing = [f"'{name}'" for name in names if name not in df.columns]
    if missing:
        raise RunError(
            f"df has no column {', '.join(missing)}, which {param} names (columns of df: {', '.join(df.columns)})"
        )


def _is_array_of_numbers(kind: Any) -> bool:
    return kind.typeName() == "array" and kind.elementType.typeName() in NUMBERS
