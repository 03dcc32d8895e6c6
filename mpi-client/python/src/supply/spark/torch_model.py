"""TorchModel: predicts with a trained module, as a stage of Spark ML's pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.ml import Model

from supply.spark.features import features_array
from supply.spark.python_of_driver import python_of_driver
from supply.spark.training import Trained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TorchModel(Model):
    """What TorchEstimator.fit returns. transform(df) adds the prediction, without ranks: Spark's tasks compute it.

    module: the trained torch.nn.Module, on the CPU.
    history: a dict for each epoch: the mean "loss", and "validation_loss" if some rows were for validation.
    """

    def __init__(self, trained: Trained, features_col: str | Sequence[str], prediction_col: str) -> None:
        super().__init__()
        self.module = trained.module
        self.history = trained.history
        self._is_scalar = trained.is_scalar
        self._features = features_col
        self._prediction = prediction_col

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """The prediction is a double if the module has one output, else an array<float>."""
        # It imports pandas, as Spark does for it.
        from supply.spark.prediction import prediction_udf

        predict = prediction_udf(self.module, self._is_scalar)
        with python_of_driver(dataset.sparkSession.sparkContext):
            prediction = predict(features_array(dataset, self._features))
        return dataset.withColumn(self._prediction, prediction)
