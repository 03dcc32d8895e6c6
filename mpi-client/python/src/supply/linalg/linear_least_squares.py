"""Linear least squares, and ridge regression."""

from __future__ import annotations

from typing import Any

from pyspark.ml.param.shared import HasFeaturesCol, HasFitIntercept, HasLabelCol, HasPredictionCol, HasRegParam
from pyspark.ml.regression import LinearRegressionModel

from supply.linalg.estimator import HasSparse, RanksEstimator
from supply.spark.ranks import Ranks


class LinearLeastSquares(
    RanksEstimator[LinearRegressionModel],
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasRegParam,
    HasFitIntercept,
    HasSparse,
):
    """As pyspark.ml.regression.LinearRegression with standardization=False, on ranks: the model is one of pyspark.ml.

    ranks: a supply.spark.Ranks, which must live until fit() returns. featuresCol: vectors. labelCol: numbers.
    regParam: as LinearRegression has it, whose loss is a mean, of labels divided by their standard deviation.
    sparse: keep only the entries that are not 0, for conjugate gradients instead of the normal equations.
    """

    __module__ = "supply.linalg"

    def __init__(
        self,
        ranks: Ranks | None = None,
        *,
        featuresCol: str = "features",  # noqa: N803
        labelCol: str = "label",  # noqa: N803
        predictionCol: str = "prediction",  # noqa: N803
        regParam: float = 0.0,  # noqa: N803
        fitIntercept: bool = True,  # noqa: N803
        sparse: bool = False,
    ) -> None:
        super().__init__(
            ranks,
            featuresCol=featuresCol,
            labelCol=labelCol,
            predictionCol=predictionCol,
            regParam=regParam,
            fitIntercept=fitIntercept,
            sparse=sparse,
        )

    def setFeaturesCol(self, value: str) -> Any:  # noqa: N802
        return self._set(featuresCol=value)

    def setLabelCol(self, value: str) -> Any:  # noqa: N802
        return self._set(labelCol=value)

    def setPredictionCol(self, value: str) -> Any:  # noqa: N802
        return self._set(predictionCol=value)

    def setRegParam(self, value: float) -> Any:  # noqa: N802
        return self._set(regParam=value)

    def setFitIntercept(self, value: bool) -> Any:  # noqa: N802
        return self._set(fitIntercept=value)

    def _create_model(self, java_model: Any) -> LinearRegressionModel:
        return LinearRegressionModel(java_model)
