"""Estimators of pyspark.ml that fit on MPI ranks. docs/OFFLOAD.md is the guide.

    from supply.linalg import PCA
    from supply.spark import Ranks

    with Ranks(spark, ranks=4) as ranks:
        model = PCA(ranks, k=20, inputCol="features", outputCol="pca").fit(df)
    model.transform(df)

Their parameters are those of pyspark.ml. The models need no ranks.
"""

from supply.linalg.estimators import PCA, KMeans, LinearLeastSquares, TruncatedSVD, TruncatedSVDModel

__all__ = ["PCA", "KMeans", "LinearLeastSquares", "TruncatedSVD", "TruncatedSVDModel"]
