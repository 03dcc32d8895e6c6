"""The columns of an estimator: its features as one column of arrays, and labels as a loss takes them."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from spark_supplier.driver.frame_checks import quoted
from spark_supplier.errors import RunError

if TYPE_CHECKING:
    import torch
    from pyspark.sql import Column, DataFrame

INTEGERS = ("byte", "short", "integer", "long", "boolean")
NUMBERS = (*INTEGERS, "float", "double", "decimal")
# featuresDtype, and Spark's type of it.
DTYPES = {"float32": "float", "int64": "bigint"}
# float32 has each integer up to this one.
_MOST = 1 << 24
# How much of a row an error shows.
_SHOWN = 200


class Features:
    """featuresCol of a DataFrame, as arrays of featuresDtype.

    size: of each row, or None if it is not known. name: for messages. alias: of the column of arrays.
    """

    def __init__(
        self, df: DataFrame, columns: str | Sequence[str], size: int | None = None, dtype: str = "float32"
    ) -> None:
        names = [columns] if isinstance(columns, str) else list(columns)
        require_columns(df, names, "featuresCol")
        self.name = ", ".join([*names[:3], "…"] if len(names) > 3 else names)
        # Spark's messages name it.
        self.alias = names[0] if len(names) == 1 else "the features"
        kind = df.schema[names[0]].dataType
        self._is_integer = dtype == "int64"
        if self._is_integer:
            self._require_integers(df, names)
        if len(names) == 1 and kind.simpleString() == "vector":
            # In Spark 3.5 it imports pandas, which only estimators need.
            from pyspark.ml.functions import vector_to_array

            vector = functions.col(quoted(names[0]))
            # It refuses nulls in words of its own.
            self.array = functions.when(vector.isNotNull(), vector_to_array(vector, "float32"))
            # VectorAssembler says it.
            found = df.schema[names[0]].metadata.get("ml_attr", {}).get("num_attrs")
        elif len(names) == 1 and _is_array_of_numbers(kind):
            array, of, what = functions.col(quoted(names[0])), kind.elementType, f"featuresCol '{names[0]}'"
            if _is_wide(of) and not self._is_integer:
                array = functions.transform(array, lambda value: _as_float(value, of, what))
            self.array = array.cast(f"array<{DTYPES[dtype]}>")
            found = None
        else:
            self._require_numbers(df, names)
            kinds = [df.schema[name].dataType for name in names]
            self.array = functions.array(
                *(
                    functions.col(quoted(n)).cast("bigint")
                    if self._is_integer
                    else _as_float(functions.col(quoted(n)), k, f"featuresCol '{n}'")
                    for n, k in zip(names, kinds)
                )
            )
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
        if self._is_integer:
            valid = functions.coalesce(
                functions.forall(self.array, lambda value: value.isNotNull()), functions.lit(False)
            )
        else:
            # Null for an array that is null or has a null.
            has_nan = functions.array_contains(self.array, functions.lit(float("nan")).cast("float"))
            valid = ~functions.coalesce(has_nan, functions.lit(True))
        return valid if self.size is None else valid & (functions.size(self.array) == self.size)

    def or_error(self) -> Column:
        """The array; a row that is not valid ends Spark's job."""
        what = "has a null or NaN" if self.size is None else f"does not have {self.size} numbers without null and NaN"
        return checked(self.array, self.is_valid(), f"featuresCol '{self.name}'", what, shown_column(self.array))

    def or_nan(self) -> Column:
        """The array, with NaN for nulls, and for all numbers of a row that has none or another number of them.

        Integers have no NaN: as or_error().
        """
        if self._is_integer:
            return self.or_error()
        nan = functions.lit(float("nan")).cast("float")
        filled = functions.transform(self.array, lambda value: functions.coalesce(value, nan))
        is_whole = functions.coalesce(functions.size(self.array) == self.size, functions.lit(False))
        return functions.when(is_whole, filled).otherwise(functions.array_repeat(nan, self.size or 0))

    def _require_integers(self, df: DataFrame, names: Sequence[str]) -> None:
        for name in names:
            kind = df.schema[name].dataType
            of = kind.elementType if _is_array_of_numbers(kind) and len(names) == 1 else kind
            if of.typeName() not in INTEGERS:
                raise RunError(
                    f"featuresCol names '{name}', which is {kind.simpleString()}, and featuresDtype is int64: cast it "
                    "to integers or to an array of them, or set featuresDtype to 'float32'"
                )

    def _require_numbers(self, df: DataFrame, names: Sequence[str]) -> None:
        for name in names:
            kind = df.schema[name].dataType
            if kind.typeName() not in NUMBERS:
                raise RunError(
                    f"featuresCol names '{name}', which is {kind.simpleString()}: it must be of numbers, or the only "
                    "column, of arrays of numbers or of vectors. VectorAssembler makes one vector of columns"
                )


def _is_wide(kind: Any) -> bool:
    """Whether it has integers that float32 does not have."""
    return kind.typeName() in ("integer", "long") or getattr(kind, "scale", 1) == 0


def _as_float(value: Column, kind: Any, what: str) -> Column:
    """The number as float32. An integer that would lose digits ends Spark's job."""
    if not _is_wide(kind):
        return value.cast("float")
    why = (
        f", of which float32 keeps no digits above {_MOST}: number its values from 0, cast it to double to round it, "
        "or set featuresDtype to 'int64' if it is an id"
    )
    text = functions.concat(functions.lit(f"{what} has the integer "), value.cast("string"), functions.lit(why))
    return functions.when(~value.between(-_MOST, _MOST), functions.raise_error(text)).otherwise(value.cast("float"))


def checked(value: Column, valid: Column, name: str, what: str, row: Column) -> Column:
    """The value; the first row that is not valid ends Spark's job. row: what the error shows of it."""
    text = functions.concat(
        functions.lit(f"{name} {what} in the row "), row,
        functions.lit(": correct it, or set handleInvalid to 'skip', which leaves such rows out"),
    )  # fmt: skip
    return functions.when(valid, value).otherwise(functions.raise_error(text))


def shown_column(value: Column) -> Column:
    """A column as text, for an error."""
    return functions.coalesce(functions.substring(value.cast("string"), 1, _SHOWN), functions.lit("null"))


def require_columns(df: DataFrame, names: Sequence[str], param: str) -> None:
    """Raises RunError if one of these columns is missing."""
    missing = [f"'{name}'" for name in names if name not in df.columns]
    if missing:
        raise RunError(
            f"df has no column {', '.join(missing)}, which {param} names (columns of df: {', '.join(df.columns)})"
        )


def weight_column(df: DataFrame, name: str) -> tuple[Column, Column]:
    """weightCol as float32, and whether a row has a weight."""
    require_columns(df, [name], "weightCol")
    kind = df.schema[name].dataType
    if kind.typeName() not in NUMBERS:
        raise RunError(f"weightCol '{name}' is {kind.simpleString()}, must be a number: cast it")
    weight = functions.col(quoted(name)).cast("float")
    # For Spark, NaN is the largest number.
    valid = (weight >= 0) & (weight < functions.lit(float("inf")).cast("float"))
    return weight, functions.coalesce(valid, functions.lit(False))


def _is_array_of_numbers(kind: Any) -> bool:
    return kind.typeName() == "array" and kind.elementType.typeName() in NUMBERS


_OF_TORCH = ("torch.nn.modules.loss", "torch.nn.functional")


class Labels(Enum):
    """What a loss takes."""

    CLASSES = "numbers of classes: int64 of shape (rows,)"
    NUMBERS = "float32 of the output's shape"
    ANY = "a function of the user's: it takes the column's type"


def labels_of(loss: Callable[..., Any]) -> Labels:
    """What this loss takes."""
    from torch import nn

    while isinstance(loss, functools.partial):
        loss = loss.func
    of_classes = (nn.functional.cross_entropy, nn.functional.nll_loss, nn.functional.multi_margin_loss)
    if isinstance(loss, (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)) or loss in of_classes:
        return Labels.CLASSES
    declared = type(loss) if isinstance(loss, nn.Module) else loss
    return Labels.NUMBERS if getattr(declared, "__module__", None) in _OF_TORCH else Labels.ANY


def takes_probabilities(loss: Callable[..., Any]) -> bool:
    """And no logits."""
    from torch import nn

    while isinstance(loss, functools.partial):
        loss = loss.func
    return isinstance(loss, nn.BCELoss) or loss is nn.functional.binary_cross_entropy


class Label:
    """labelCol of a DataFrame, for a loss. classes: how many there are; 0: not known. ignored: a label of no class."""

    def __init__(self, df: DataFrame, name: str, labels: Labels, classes: int = 0, ignored: int | None = None) -> None:
        require_columns(df, [name], "labelCol")
        self.name = name
        self._column = functions.col(quoted(name))
        kind = df.schema[name].dataType
        if kind.typeName() not in NUMBERS:
            raise RunError(
                f"labelCol '{name}' is {kind.simpleString()}, must be a number: cast it. StringIndexer makes numbers "
                "of classes of text"
            )
        self._kind = kind
        self._is_integer = kind.typeName() in INTEGERS
        self._is_of_classes, self._classes, self._ignored = labels == Labels.CLASSES, classes, ignored
        self._type = "long" if self._is_of_classes or (self._is_integer and labels == Labels.ANY) else "float"

    def is_valid(self) -> Column:
        """Whether a row has a label."""
        return self._column.isNotNull() & ~functions.isnan(self._column.cast("float"))

    def cast(self) -> Column:
        """The label of a valid row in the type that the loss takes. A number that is no class ends Spark's job."""
        if self._type == "float":
            label = _as_float(self._column, self._kind, f"labelCol '{self.name}'")
        else:
            label = self._column.cast(self._type)
        if not self._classes and (self._is_integer or not self._is_of_classes):
            return label
        number = self._column.cast("double")
        is_class = number % 1 == 0
        if self._classes:
            is_class &= number.between(0, self._classes - 1)
            if self._ignored is not None:
                is_class |= number == self._ignored
        # handleInvalid is for others.
        is_class |= ~self.is_valid()
        rule = "the loss takes numbers of classes (0, 1, …): cast it, or take another loss"
        if self._classes:
            rule = f"numClasses is {self._classes}: labels must be 0 to {self._classes - 1}"
        found = functions.concat(functions.lit(f"labelCol '{self.name}' has "), shown_column(self._column))
        text = functions.concat(found, functions.lit(f", and {rule}"))
        return functions.when(is_class, label).otherwise(functions.raise_error(text))

    def or_error(self, row: Column) -> Column:
        """The label; a row without one ends Spark's job. row: what the error shows of it."""
        return checked(self.cast(), self.is_valid(), f"labelCol '{self.name}'", "is null or NaN", row)

    def or_nan(self, row: Column) -> Column:
        """The label, and NaN for null. An integer has no NaN: as or_error()."""
        if self._type == "long":
            return self.or_error(row)
        return functions.coalesce(self.cast(), functions.lit(float("nan")).cast("float"))


def loss_of(
    loss: Callable[..., torch.Tensor],
    output: torch.Tensor,
    label: torch.Tensor,
    labels: Labels,
    name: str,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """The loss of a batch. name: of labelCol. weight: of each row; the loss is by_row() then."""
    if labels != Labels.CLASSES and label.numel() == output.numel():
        # A loss of (rows, 1) and (rows,) would be one of (rows, rows).
        label = label.reshape(output.shape)
    elif labels != Labels.CLASSES:
        shapes = f"labelCol '{name}' has one number a row, and the output of the model has shape {tuple(output.shape)}"
        if labels == Labels.NUMBERS:
            raise RunError(f"{shapes}: this loss takes as many numbers as the output has. Give the model one output")
        _refuse_broadcast(loss, output, label, shapes)
    value = loss(output, label)
    if weight is not None:
        if value.dim() == 0 or len(value) != len(weight):
            raise RunError(
                f"the loss has shape {tuple(value.shape)}: with weightCol it must have one number for each of the "
                f"{len(weight)} rows (reduction='none')"
            )
        return weight * value.reshape(len(weight), -1).mean(1)
    if value.numel() != 1:
        raise RunError(f"the loss has shape {tuple(value.shape)}, must be one number: its mean (reduction='mean')")
    return value


def by_row(loss: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A loss of torch.nn that does not sum over the rows. Another one as it is."""
    if hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.reduction = "none"
        return loss
    with contextlib.suppress(ValueError):
        if "reduction" in inspect.signature(loss).parameters:
            return functools.partial(loss, reduction="none")
    return loss


def _refuse_broadcast(
    loss: Callable[..., torch.Tensor], output: torch.Tensor, label: torch.Tensor, shapes: str
) -> None:
    """Raises RunError if the loss stretches the labels to the outputs, which PyTorch lets it for these numbers of rows.

    For other numbers of rows PyTorch refuses it.
    """
    import torch

    rows, outputs = len(label), output.shape[-1]
    if rows not in (1, outputs):
        return
    times = 2 if 2 * rows != outputs else 3
    try:
        with torch.no_grad():
            loss(torch.cat([output] * times), label.repeat(times))
    except RuntimeError as error:
        raise RunError(f"{shapes}, which the loss broadcasts: give both the same shape in the loss") from error
