"""TorchModel: predicts with a trained module, as a stage of Spark ML's pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.ml import Model

from supply.errors import RunError
from supply.spark.features import Features
from supply.spark.python_of_driver import python_of_driver
from supply.spark.stage_files import ObjectsStage
from supply.spark.torch_params import TorchParams

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame


class TorchModel(Model, TorchParams, ObjectsStage):
    """The model of TorchEstimator. transform(df) adds the prediction, without ranks: Spark's tasks compute it.

    module: the trained torch.nn.Module, on the CPU.
    history: a dict for each epoch: the mean "loss", and "validation_loss" if some rows were for validation.

    handleInvalid: as for TorchEstimator. With "error", the exception that Spark raises has the row; with "keep", the
    prediction is what the module makes of NaN, and null instead of a single NaN.
    """

    # The name in saved pipelines.
    __module__ = "supply.spark"

    def __init__(
        self, module: torch.nn.Module, history: list[dict[str, float]], num_features: int, is_scalar: bool
    ) -> None:
        super().__init__()
        self.module = module
        self.history = history
        self._num_features = num_features
        self._is_scalar = is_scalar

    @property
    def numFeatures(self) -> int:  # noqa: N802  as pyspark.ml has it
        """Of a row."""
        return self._num_features

    def _objects(self) -> dict[str, Any]:
        return {
            "module": self.module, "history": self.history, "num_features": self._num_features,
            "is_scalar": self._is_scalar,
        }  # fmt: skip

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """The prediction is a double if the module has one output, else an array<float>."""
        # It imports pandas, as Spark does for it.
        from supply.spark.prediction import prediction_udf

        name = self.getPredictionCol()
        if name in dataset.columns:
            raise RunError(f"predictionCol '{name}' is a column of df already: set another one")
        features = Features(dataset, self.getFeaturesCol(), self._num_features)
        array = features.array
        if self.getHandleInvalid() == "skip":
            dataset = dataset.where(features.is_valid())
        else:
            array = features.or_error() if self.getHandleInvalid() == "error" else features.or_nan()
        predict = prediction_udf(self.module, self._is_scalar)
        with python_of_driver(dataset.sparkSession.sparkContext):
            prediction = predict(array)
        return dataset.withColumn(name, prediction)
