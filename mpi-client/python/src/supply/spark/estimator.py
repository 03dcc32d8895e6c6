"""TorchEstimator: training with PyTorch as a stage of Spark ML's pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.ml import Estimator
from pyspark.sql import functions

from supply.errors import RunError
from supply.spark.column_names import quoted
from supply.spark.features import features_array, require_columns
from supply.spark.supplier import Supplier
from supply.spark.torch_model import TorchModel
from supply.spark.training import Training, train

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

# The columns that ranks get.
_FEATURES, _LABEL = "features", "label"
_INTEGERS = ("byte", "short", "integer", "long", "boolean")


def _adam(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    import torch

    return torch.optim.Adam(parameters)


class TorchEstimator(Estimator[TorchModel]):
    """An Estimator of pyspark.ml. fit(df) trains with DistributedDataParallel on all ranks, and returns a TorchModel.

    model: a torch.nn.Module, or a function without arguments that makes one. Its input is float32, of shape
        (elements, features).
    loss: a function of output and labels, for example torch.nn.CrossEntropyLoss(). Labels of integer columns are int64
        of shape (elements,). Others are float32; if the model has one output, their shape is (elements, 1).
    features_col: the features: a column of vectors (of VectorAssembler), of arrays or of numbers, or a list of columns
        of numbers.
    optimizer: a function of the model's parameters. Not set: torch.optim.Adam.
    batch_size: elements of a batch of one rank. A rank repeats some elements, so that all make equal steps.
    validation: the fraction of the rows that are not for training, or the name of a column that is true for these rows.
    supplier: an int is the number of ranks. A Supplier says more.
    options: other arguments of Supplier.run, for example shuffle, resident or timeout.

    Persistence (MLWritable) is not supported: save the state_dict() of TorchModel.module.
    """

    def __init__(
        self,
        model: torch.nn.Module | Callable[[], torch.nn.Module],
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        *,
        features_col: str | Sequence[str] = "features",
        label_col: str = "label",
        prediction_col: str = "prediction",
        optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] = _adam,
        batch_size: int = 32,
        epochs: int = 1,
        seed: int = 0,
        validation: float | str | None = None,
        supplier: int | Supplier = 1,
        **options: Any,
    ) -> None:
        super().__init__()
        self._training = Training(model, loss, optimizer, seed)
        self._features = features_col
        self._label = label_col
        self._prediction = prediction_col
        self._batch_size = batch_size
        self._epochs = epochs
        self._validation = validation
        self._supplier = Supplier(supplier) if isinstance(supplier, int) else supplier
        self._options = options

    def _fit(self, dataset: DataFrame) -> TorchModel:
        training, validation = self._split(dataset)
        trained = self._supplier.run(
            train, self._selected(training), columns=[_FEATURES, _LABEL], batch_size=self._batch_size,
            epochs=self._epochs, seed=self._training.seed, uneven="pad",
            validation=None if validation is None else self._selected(validation),
            kwargs={"training": self._training}, **self._options,
        )  # fmt: skip
        return TorchModel(trained, self._features, self._prediction)

    def _split(self, df: DataFrame) -> tuple[DataFrame, DataFrame | None]:
        """The rows for training, and those for validation."""
        if self._validation is None:
            return df, None
        if isinstance(self._validation, str):
            held_out = functions.coalesce(functions.col(quoted(self._validation)), functions.lit(False))
            return df.where(~held_out), df.where(held_out)
        if not 0 < self._validation < 1:
            raise RunError(f"validation is {self._validation}, must be between 0 and 1, or the name of a column")
        first, second = df.randomSplit([1 - self._validation, self._validation], self._training.seed)
        return first, second

    def _selected(self, df: DataFrame) -> DataFrame:
        require_columns(df, [self._label])
        kind = df.schema[self._label].dataType.typeName()
        label = functions.col(quoted(self._label)).cast("long" if kind in _INTEGERS else "float")
        return df.select(features_array(df, self._features).alias(_FEATURES), label.alias(_LABEL))
