"""Clusters."""

from __future__ import annotations

from typing import Any

from pyspark.ml.clustering import KMeansModel
from pyspark.ml.param.shared import HasFeaturesCol, HasMaxIter, HasPredictionCol, HasSeed, HasTol

from supply.linalg.estimator import HasK, RanksEstimator
from supply.spark.ranks import Ranks


class KMeans(RanksEstimator[KMeansModel], HasK, HasFeaturesCol, HasPredictionCol, HasMaxIter, HasTol, HasSeed):
    """As pyspark.ml.clustering.KMeans, on ranks: fit(df) returns a KMeansModel of pyspark.ml, without a summary.

    ranks: a supply.spark.Ranks, which must live until fit() returns. featuresCol: vectors. k: clusters. maxIter: of
    iterations, at most. tol: they end when no center moves farther. seed: of the first centers, which are other
    ones than MLlib's.
    """

    __module__ = "supply.linalg"

    def __init__(
        self,
        ranks: Ranks | None = None,
        *,
        k: int = 2,
        featuresCol: str = "features",  # noqa: N803
        predictionCol: str = "prediction",  # noqa: N803
        maxIter: int = 20,  # noqa: N803
        tol: float = 1e-4,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            ranks, k=k, featuresCol=featuresCol, predictionCol=predictionCol, maxIter=maxIter, tol=tol, seed=seed
        )

    def setFeaturesCol(self, value: str) -> Any:  # noqa: N802
        return self._set(featuresCol=value)

    def setPredictionCol(self, value: str) -> Any:  # noqa: N802
        return self._set(predictionCol=value)

    def setMaxIter(self, value: int) -> Any:  # noqa: N802
        return self._set(maxIter=value)

    def setTol(self, value: float) -> Any:  # noqa: N802
        return self._set(tol=value)

    def setSeed(self, value: int) -> Any:  # noqa: N802
        return self._set(seed=value)

    def _create_model(self, java_model: Any) -> KMeansModel:
        return KMeansModel(java_model)
