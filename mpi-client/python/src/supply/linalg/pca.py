"""Principal components."""

from __future__ import annotations

from typing import Any

from pyspark.ml.feature import PCAModel

from supply.linalg.estimator import Decomposition


class PCA(Decomposition[PCAModel]):
    """As pyspark.ml.feature.PCA, on ranks: fit(df) returns a pyspark.ml.feature.PCAModel.

    ranks: a supply.spark.Ranks, which must live until fit() returns. k: components. inputCol: vectors. outputCol: what
    the model adds. sparse: keep only the entries that are not 0.
    """

    __module__ = "supply.linalg"

    def _create_model(self, java_model: Any) -> PCAModel:
        return PCAModel(java_model)
