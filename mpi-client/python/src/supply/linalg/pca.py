"""Principal components."""

from __future__ import annotations

from typing import Any

from pyspark.ml.feature import PCAModel

from supply.linalg.estimator import HasK, HasSparse, RanksEstimator, VectorColumns
from supply.spark.ranks import Ranks


class PCA(RanksEstimator[PCAModel], HasK, VectorColumns, HasSparse):
    """As pyspark.ml.feature.PCA, on ranks: fit(df) returns a pyspark.ml.feature.PCAModel.

    ranks: a supply.spark.Ranks, which must live until fit() returns. k: components. inputCol: vectors. outputCol: what
    the model adds. sparse: keep only the entries that are not 0.
    """

    def __init__(
        self,
        ranks: Ranks,
        *,
        k: int | None = None,
        inputCol: str | None = None,  # noqa: N803
        outputCol: str | None = None,  # noqa: N803
        sparse: bool = False,
    ) -> None:
        super().__init__(ranks, k=k, inputCol=inputCol, outputCol=outputCol, sparse=sparse)

    def _create_model(self, java_model: Any) -> PCAModel:
        return PCAModel(java_model)
