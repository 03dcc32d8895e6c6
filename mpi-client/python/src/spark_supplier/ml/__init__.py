"""Estimators of pyspark.ml that train on ranks. The models that they make need no ranks.

TorchEstimator trains a PyTorch module (docs/SPARK-ML.md). The others fit on ranks of MPI that hold the rows as a matrix
(docs/OFFLOAD.md), with the parameters of pyspark.ml:

    from spark_supplier.ml import PCA
    from spark_supplier.offload import MatrixRanks

    with MatrixRanks(spark, ranks=4) as ranks:
        model = PCA(ranks=ranks, k=20, inputCol="features", outputCol="pca").fit(df)
    model.transform(df)
"""

from spark_supplier.ml.estimator import TorchEstimator
from spark_supplier.ml.linalg import PCA, KMeans, LinearLeastSquares, TruncatedSVD, TruncatedSVDModel
from spark_supplier.ml.torch_model import TorchModel

__all__ = ["PCA", "KMeans", "LinearLeastSquares", "TorchEstimator", "TorchModel", "TruncatedSVD", "TruncatedSVDModel"]
