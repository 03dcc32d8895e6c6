"""What a loss takes for labels, and the label column in that form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from supply.errors import RunError
from supply.spark.column_names import quoted
from supply.spark.features import INTEGERS, NUMBERS, checked, require_columns, shown

if TYPE_CHECKING:
    import torch
    from pyspark.sql import Column, DataFrame

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


class Label:
    """labelCol of a DataFrame, for a loss."""

    def __init__(self, df: DataFrame, name: str, labels: Labels) -> None:
        require_columns(df, [name], "labelCol")
        self.name = name
        self._column = functions.col(quoted(name))
        kind = df.schema[name].dataType
        if kind.typeName() not in NUMBERS:
            raise RunError(
                f"labelCol '{name}' is {kind.simpleString()}, must be a number: cast it. StringIndexer makes numbers "
                "of classes of text"
            )
        self._is_integer = kind.typeName() in INTEGERS
        self._is_of_classes = labels == Labels.CLASSES
        self._type = "long" if self._is_of_classes or (self._is_integer and labels == Labels.ANY) else "float"

    def is_valid(self) -> Column:
        """Whether a row has a label."""
        return self._column.isNotNull() & ~functions.isnan(self._column.cast("float"))

    def cast(self) -> Column:
        """The label of a valid row in the type that the loss takes. A number that is no class ends Spark's job."""
        label = self._column.cast(self._type)
        if self._is_integer or not self._is_of_classes:
            return label
        text = functions.concat(
            functions.lit(f"labelCol '{self.name}' has "), shown(self._column),
            functions.lit(", and the loss takes numbers of classes (0, 1, …): cast it, or take another loss"),
        )  # fmt: skip
        return functions.when(self._column % 1 == 0, label).otherwise(functions.raise_error(text))

    def or_error(self, row: Column) -> Column:
        """The label; a row without one ends Spark's job. row: what the error shows of it."""
        return checked(self.cast(), self.is_valid(), f"labelCol '{self.name}'", "is null or NaN", row)

    def or_nan(self, row: Column) -> Column:
        """The label, and NaN for null. An integer has no NaN: as or_error()."""
        if self._type == "long":
            return self.or_error(row)
        return functions.coalesce(self.cast(), functions.lit(float("nan")).cast("float"))


def loss_of(
    loss: Callable[..., torch.Tensor], output: torch.Tensor, label: torch.Tensor, labels: Labels, name: str
) -> torch.Tensor:
    """The loss of a batch. name: of labelCol."""
    if labels == Labels.CLASSES:
        return loss(output, label)
    if label.numel() == output.numel():
        # A loss of (rows, 1) and (rows,) would be one of (rows, rows).
        return loss(output, label.reshape(output.shape))
    shapes = f"labelCol '{name}' has one number a row, and the output of the model has shape {tuple(output.shape)}"
    if labels == Labels.NUMBERS:
        raise RunError(f"{shapes}: this loss takes as many numbers as the output has. Give the model one output")
    _refuse_broadcast(loss, output, label, shapes)
    return loss(output, label)


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
