"""The largest singular values."""

from __future__ import annotations

from typing import Any

from pyspark.ml.linalg import DenseMatrix, DenseVector
from pyspark.ml.util import JavaMLReadable, JavaMLWritable
from pyspark.ml.wrapper import JavaModel

from supply.linalg.estimator import Decomposition, HasK, VectorColumns


class TruncatedSVDModel(JavaModel, HasK, VectorColumns, JavaMLWritable, JavaMLReadable["TruncatedSVDModel"]):
    """The model of TruncatedSVD. transform(df) multiplies each vector by V: the rows of U S. Needs no ranks."""

    # PySpark finds the JVM's class by it.
    __module__ = "supply.linalg"

    @property
    def components(self) -> DenseMatrix:
        """V: a column for each singular value, whose largest value is positive."""
        return self._call_java("components")

    @property
    def singularValues(self) -> DenseVector:  # noqa: N802
        """Descending."""
        return self._call_java("singularValues")


class TruncatedSVD(Decomposition[TruncatedSVDModel]):
    """The largest singular values of vectors, and their right vectors, on ranks: fit(df) returns a TruncatedSVDModel.

    ranks: a supply.spark.Ranks, which must live until fit() returns. k: singular values. inputCol: vectors.
    outputCol: what the model adds. sparse: keep only the entries that are not 0.
    """

    __module__ = "supply.linalg"

    def _create_model(self, java_model: Any) -> TruncatedSVDModel:
        return TruncatedSVDModel(java_model)
