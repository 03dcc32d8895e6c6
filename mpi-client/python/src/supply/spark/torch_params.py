"""The parameters that TorchEstimator and TorchModel share, as Spark ML has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasHandleInvalid,
    HasLabelCol,
    HasPredictionCol,
    HasSeed,
    HasValidationIndicatorCol,
)

from supply.errors import ConfigError

_HANDLE_INVALID = ("error", "skip", "keep")


def _to_columns(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else TypeConverters.toListString(value)


def _to_count(name: str) -> Callable[[Any], int]:
    def to_count(value: Any) -> int:
        count: int = TypeConverters.toInt(value)
        if count < 1:
            raise ConfigError(f"{name} is {count}, must be 1 or more")
        return count

    return to_count


def _to_fraction(value: Any) -> float:
    fraction: float = TypeConverters.toFloat(value)
    if not 0 < fraction < 1:
        raise ConfigError(f"validationFraction is {fraction}, must be between 0 and 1")
    return fraction


def _to_handle_invalid(value: Any) -> str:
    if value not in _HANDLE_INVALID:
        raise ConfigError(f"handleInvalid is {value!r}, must be one of {', '.join(_HANDLE_INVALID)}")
    return str(value)


def param(name: str, doc: str, converter: Callable[[Any], Any] | None = None) -> Param[Any]:
    """A param of a class, under that name."""
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class TorchParams(
    HasFeaturesCol, HasLabelCol, HasPredictionCol, HasSeed, HasValidationIndicatorCol, HasHandleInvalid
):  # fmt: skip
    featuresCol = param(
        "featuresCol", "a column of vectors, of arrays or of numbers, or a list of columns of numbers", _to_columns
    )
    batchSize = param("batchSize", "rows of a batch of one rank (>= 1)", _to_count("batchSize"))
    epochs = param("epochs", "passes over the rows (>= 1)", _to_count("epochs"))
    validationFraction = param(
        "validationFraction",
        "the fraction of the rows, chosen at random, that are for validation and not for training",
        _to_fraction,
    )
    handleInvalid = param(
        "handleInvalid",
        "what to do with rows that have a null, NaN, or an array of another length: error; skip leaves them out; keep "
        "makes features and labels of NaN",
        _to_handle_invalid,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(batchSize=32, epochs=1, seed=0, handleInvalid="error")

    # The names are those of pyspark.ml.

    def getFeaturesCol(self) -> Any:  # noqa: N802
        return self.getOrDefault(self.featuresCol)

    def getBatchSize(self) -> int:  # noqa: N802
        return int(self.getOrDefault(self.batchSize))

    def getEpochs(self) -> int:  # noqa: N802
        return int(self.getOrDefault(self.epochs))

    def getValidationFraction(self) -> float:  # noqa: N802
        return float(self.getOrDefault(self.validationFraction))

    def setFeaturesCol(self, value: str | Sequence[str]) -> Any:  # noqa: N802
        return self._set(featuresCol=value)

    def setPredictionCol(self, value: str) -> Any:  # noqa: N802
        return self._set(predictionCol=value)

    def setHandleInvalid(self, value: str) -> Any:  # noqa: N802
        return self._set(handleInvalid=value)
