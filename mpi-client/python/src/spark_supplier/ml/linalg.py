"""The estimators: clusters, least squares, principal components, singular values."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from pyspark import keyword_only
from pyspark.ml.clustering import KMeansModel
from pyspark.ml.feature import PCAModel
from pyspark.ml.linalg import DenseMatrix, DenseVector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasFitIntercept,
    HasInputCol,
    HasLabelCol,
    HasMaxIter,
    HasOutputCol,
    HasPredictionCol,
    HasRegParam,
    HasSeed,
    HasTol,
)
from pyspark.ml.regression import LinearRegressionModel
from pyspark.ml.util import JavaMLReadable, JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel
from pyspark.sql import SparkSession

from spark_supplier.driver.sessions import session_of
from spark_supplier.errors import RunError
from spark_supplier.ml.torch_model import SetsParams, accessors
from spark_supplier.offload.matrix_ranks import MatrixRanks

_Model = TypeVar("_Model", bound=JavaModel)


class HasK(Params):
    k: Param[int] = Param(Params._dummy(), "k", "how many are computed (> 0)", typeConverter=TypeConverters.toInt)

    getK, setK = accessors("k")


class HasSparse(Params):
    sparse: Param[bool] = Param(
        Params._dummy(),
        "sparse",
        "whether the ranks keep only the entries of vectors that are not 0",
        typeConverter=TypeConverters.toBoolean,
    )

    getSparse, setSparse = accessors("sparse")


class VectorColumns(HasInputCol, HasOutputCol):
    _, setInputCol = accessors("inputCol")
    _, setOutputCol = accessors("outputCol")


class InJar(JavaMLWritable, JavaMLReadable[Any]):
    """A stage whose class of the JVM is in the Supplier's jar."""

    @classmethod
    def _require_jar(cls) -> None:
        if (spark := SparkSession.getActiveSession()) is not None:
            session_of(spark).check(f"{cls.__name__}: the session")

    @classmethod
    def read(cls) -> Any:
        cls._require_jar()
        return super().read()


class RanksEstimator(SetsParams, JavaEstimator[_Model], InJar):
    """An estimator of the JVM's package spark_supplier.ml, with the name of the Python class.

    Its params are saved, its ranks are not: set them after load.
    """

    # PySpark finds the JVM's class by the module spark_supplier.ml, which subclasses must name as theirs.

    def __init__(self, ranks: MatrixRanks | None = None, **given: Any) -> None:
        super().__init__()
        self._ranks = ranks
        self._require_jar()
        self._java_obj = self._new_java_obj(f"spark_supplier.ml.{type(self).__name__}", self.uid)
        params = inspect.signature(type(self)).parameters.values()
        self._setDefault(**{param.name: param.default for param in params if param.default is not None})
        self.setParams(**given)

    def setRanks(self, value: MatrixRanks) -> Any:
        """Set the MatrixRanks that fit. They must live until `fit` returns."""
        self._ranks = value
        return self

    def clear(self, param: Param[Any]) -> None:
        """Give a param its default back."""
        # Over Spark Connect, PySpark's own method does nothing.
        Params.clear(self, param)
        super().clear(param)

    def _fit(self, dataset: Any) -> _Model:
        if self._ranks is None:
            raise RunError(f"{self.uid} has no ranks, which are not saved with it: call setRanks(ranks)")
        for param, value in self._paramMap.items():
            if value is None:
                raise RunError(f"{param.name} is None, must be {param.doc}: clear({param.name}) gives the default back")
        fitting = self._ranks._set_on(self)
        # Ctrl-C ends it, and errors of ranks are RunErrors.
        model: _Model = self._ranks._ask(lambda: super(RanksEstimator, fitting)._fit(dataset))
        return model


class Decomposition(RanksEstimator[_Model], HasK, VectorColumns, HasSparse):
    """An estimator that computes k vectors from a column of vectors."""

    @keyword_only
    def __init__(
        self,
        *,
        ranks: MatrixRanks | None = None,
        k: int | None = None,
        inputCol: str | None = None,
        outputCol: str | None = None,
        sparse: bool = False,
    ) -> None:
        super().__init__(**self._input_kwargs)


class KMeans(RanksEstimator[KMeansModel], HasK, HasFeaturesCol, HasPredictionCol, HasMaxIter, HasTol, HasSeed):
    """As pyspark.ml.clustering.KMeans, on ranks: `fit` returns a KMeansModel of pyspark.ml, without a summary.

    Parameters
    ----------
    ranks : MatrixRanks
        They must live until `fit` returns. They are no param, and are not saved.
    k : int, default 2
        The number of clusters.
    featuresCol, predictionCol : str, default "features" and "prediction"
        A column of vectors, and the column that the model adds.
    maxIter : int, default 20
        The largest number of iterations.
    tol : float, default 1e-4
        The iterations end when no center moves farther.
    seed : int, optional
        Of the first centers, which are not those of MLlib.

    Examples
    --------
    >>> from spark_supplier.offload import MatrixRanks
    >>> with MatrixRanks(spark, 2) as ranks:  # doctest: +SKIP
    ...     model = KMeans(ranks=ranks, k=3, seed=1).fit(df)
    """

    __module__ = "spark_supplier.ml"

    @keyword_only
    def __init__(
        self,
        *,
        ranks: MatrixRanks | None = None,
        k: int = 2,
        featuresCol: str = "features",
        predictionCol: str = "prediction",
        maxIter: int = 20,
        tol: float = 1e-4,
        seed: int | None = None,
    ) -> None:
        super().__init__(**self._input_kwargs)

    _, setFeaturesCol = accessors("featuresCol")
    _, setPredictionCol = accessors("predictionCol")
    _, setMaxIter = accessors("maxIter")
    _, setTol = accessors("tol")
    _, setSeed = accessors("seed")

    def _create_model(self, java_model: Any) -> KMeansModel:
        return KMeansModel(java_model)


class LinearLeastSquares(
    RanksEstimator[LinearRegressionModel],
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasRegParam,
    HasFitIntercept,
    HasSparse,
):
    """As pyspark.ml.regression.LinearRegression with standardization=False, on ranks. The model is one of pyspark.ml.

    Parameters
    ----------
    ranks : MatrixRanks
        They must live until `fit` returns. They are no param, and are not saved.
    featuresCol, labelCol, predictionCol : str, default "features", "label" and "prediction"
        A column of vectors, a column of numbers, and the column that the model adds.
    regParam : float, default 0.0
        As LinearRegression has it, whose loss is a mean, of labels divided by their standard deviation.
    fitIntercept : bool, default True
        Whether the model has an intercept.
    sparse : bool, default False
        Keep only the entries that are not 0, for conjugate gradients instead of the normal equations.

    Examples
    --------
    >>> from spark_supplier.offload import MatrixRanks
    >>> with MatrixRanks(spark, 2) as ranks:  # doctest: +SKIP
    ...     model = LinearLeastSquares(ranks=ranks, regParam=0.1).fit(df)
    """

    __module__ = "spark_supplier.ml"

    @keyword_only
    def __init__(
        self,
        *,
        ranks: MatrixRanks | None = None,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        regParam: float = 0.0,
        fitIntercept: bool = True,
        sparse: bool = False,
    ) -> None:
        super().__init__(**self._input_kwargs)

    _, setFeaturesCol = accessors("featuresCol")
    _, setLabelCol = accessors("labelCol")
    _, setPredictionCol = accessors("predictionCol")
    _, setRegParam = accessors("regParam")
    _, setFitIntercept = accessors("fitIntercept")

    def _create_model(self, java_model: Any) -> LinearRegressionModel:
        return LinearRegressionModel(java_model)


class PCA(Decomposition[PCAModel]):
    """As pyspark.ml.feature.PCA, on ranks: `fit` returns a pyspark.ml.feature.PCAModel.

    Parameters
    ----------
    ranks : MatrixRanks
        They must live until `fit` returns. They are no param, and are not saved.
    k : int
        The number of components.
    inputCol, outputCol : str
        A column of vectors, and the column that the model adds.
    sparse : bool, default False
        Keep only the entries that are not 0.

    Examples
    --------
    >>> from spark_supplier.offload import MatrixRanks
    >>> with MatrixRanks(spark, 2) as ranks:  # doctest: +SKIP
    ...     model = PCA(ranks=ranks, k=2, inputCol="features", outputCol="pca").fit(df)
    """

    __module__ = "spark_supplier.ml"

    def _create_model(self, java_model: Any) -> PCAModel:
        return PCAModel(java_model)


class TruncatedSVDModel(JavaModel, HasK, VectorColumns, InJar):
    """The model of TruncatedSVD. transform(df) multiplies each vector by V: the rows of U S. Needs no ranks."""

    # PySpark finds the JVM's class by it, which is a PCAModel: Spark Connect reads values of Spark's classes only.
    __module__ = "spark_supplier.ml"

    @property
    def components(self) -> DenseMatrix:
        """V: a column for each singular value, whose largest value is positive."""
        return self._call_java("pc")

    @property
    def singularValues(self) -> DenseVector:
        """Descending."""
        return self._call_java("explainedVariance")


class TruncatedSVD(Decomposition[TruncatedSVDModel]):
    """The largest singular values of vectors, and their right vectors, on ranks.

    Parameters
    ----------
    ranks : MatrixRanks
        They must live until `fit` returns. They are no param, and are not saved.
    k : int
        The number of singular values.
    inputCol, outputCol : str
        A column of vectors, and the column that the model adds.
    sparse : bool, default False
        Keep only the entries that are not 0.

    Examples
    --------
    >>> from spark_supplier.offload import MatrixRanks
    >>> with MatrixRanks(spark, 2) as ranks:  # doctest: +SKIP
    ...     model = TruncatedSVD(ranks=ranks, k=2, inputCol="features", outputCol="svd").fit(df)
    """

    __module__ = "spark_supplier.ml"

    def _create_model(self, java_model: Any) -> TruncatedSVDModel:
        return TruncatedSVDModel(java_model)
