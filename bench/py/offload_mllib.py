"""MLlib's ways to do the jobs of bench/offload. Small results come as numpy arrays, rows into Spark's memory."""

import os
import pathlib
import time

import numpy
from pyspark.ml.clustering import KMeans
from pyspark.ml.functions import array_to_vector
from pyspark.ml.regression import LinearRegression
from pyspark.mllib.common import _java2py, _py2java
from pyspark.mllib.linalg import Vectors
from pyspark.mllib.linalg.distributed import RowMatrix
from pyspark.mllib.util import MLUtils
from pyspark.sql import functions


def native_blas(spark):
    """The class that MLlib's products call, and the shared library that this JVM has mapped for it."""
    blas = spark._jvm.dev.ludovic.netlib.blas.NativeBLAS.getInstance()
    maps = pathlib.Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text(encoding="utf-8")
    libraries = {os.path.realpath(line.split()[-1]) for line in maps.splitlines() if "blas" in line.split()[-1]}
    return {"class": blas.getClass().getName(), "libraries": sorted(libraries)}


class MLlib:
    """A DataFrame of offload_data in the forms that MLlib takes, in Spark's memory.

    conversion_s: how long that took. No job includes it.
    """

    def __init__(self, spark, frame):
        self._context, self._jvm = spark.sparkContext, spark._jvm
        self._label_deviation = frame.agg(functions.stddev("label")).first()[0]
        start = time.perf_counter()
        self.vectors = frame.select("id", "label", array_to_vector("features").alias("features")).persist()
        self.vectors.count()
        self.matrix = RowMatrix(MLUtils.convertVectorColumnsFromML(self.vectors.select("features"), "features"))
        self._java = self.matrix._java_matrix_wrapper._java_model
        self._java.rows().cache().count()
        self.conversion_s = time.perf_counter() - start

    def release(self):
        self._java.rows().unpersist(True)
        self.vectors.unpersist(blocking=True)

    def compute_svd(self, k):
        svd = self.matrix.computeSVD(k, computeU=True)
        compute(svd.U)
        return {"singular values": svd.s.toArray()}

    def pca(self, k):
        components = self.matrix.computePrincipalComponents(k)
        compute(self.matrix.multiply(components))
        return {"components": components.toArray()}

    def kmeans(self, k, iterations):
        # tol=0: all iterations are done.
        model = KMeans(k=k, maxIter=iterations, tol=0.0, seed=1, solver="block").fit(self.vectors)
        numpy.array(model.clusterCenters())
        model.transform(self.vectors).select("id", "prediction").write.format("noop").mode("overwrite").save()
        return {"cost": model.summary.trainingCost}

    def ridge(self, solver, l2):
        # The loss of MLlib is a mean, of labels that it has scaled.
        weight = l2 * self._label_deviation / self.matrix.numRows()
        regression = LinearRegression(solver=solver, regParam=weight, standardization=False, tol=1e-9, maxIter=1000)
        model = regression.fit(self.vectors)
        return {"coefficients": model.coefficients.toArray()}

    def gram_vector(self, right, iterations):
        """The power method, as far as doubles reach without scaling. The vectors stay in the JVM."""
        vector = self._breeze(right)
        for _ in range(iterations):
            # computeSVD calls it, too.
            vector = self._java.multiplyGramianMatrixBy(vector)
        return {"vector": self._numpy(vector)}

    def _breeze(self, values):
        return _py2java(self._context, Vectors.dense(values)).asBreeze()

    def _numpy(self, vector):
        values = self._jvm.org.apache.spark.mllib.linalg.Vectors.dense(vector.data())
        return _java2py(self._context, values).toArray()


def compute(matrix):
    """Computes the rows of a RowMatrix. They stay in the JVM."""
    matrix._java_matrix_wrapper._java_model.rows().count()
