"""The jobs of bench/offload on MPI ranks: a DataFrame in, numpy arrays and a DataFrame out."""

import functools


class OnRanks:
    """ranks: MatrixRanks. frame: of offload_data. right: the same, with a row for each column of frame."""

    def __init__(self, ranks, frame, right):
        self._ranks, self._frame, self._right = ranks, frame, right

    def truncated_svd(self, k):
        matrix = self._ranks.matrix(self._frame, features="features", key="id")
        left, values, right = self._ranks.call("truncated_svd", matrix, k=k)
        right.to_numpy()
        compute(left)
        return {"singular values": values.to_numpy()}

    def pca(self, k):
        matrix = self._ranks.matrix(self._frame, features="features", key="id")
        components, variance, mean, scores = self._ranks.call("pca", matrix, k=k)
        compute(scores)
        return {"components": components.to_numpy()}

    def kmeans(self, k, iterations):
        matrix = self._ranks.matrix(self._frame, features="features", key="id")
        centers, labels, cost = self._ranks.call("kmeans", matrix, k=k, iterations=iterations, tolerance=0.0)
        centers.to_numpy()
        compute(labels)
        return {"cost": cost.to_numpy()}

    def ridge(self, l2):
        matrix = self._ranks.matrix(self._frame, features="features")
        label = self._ranks.matrix(self._frame, features="label")
        coefficients, intercept = self._ranks.call("ridge", matrix, label, l2=l2)
        intercept.to_numpy()
        return {"coefficients": coefficients.to_numpy()}

    def gram_vector(self, iterations):
        """On matrices that the ranks hold, as MLlib has its own in Spark's memory."""
        return {"vector": self._ranks.call("gram_vector", *self._held, iterations=iterations).to_numpy()}

    @functools.cached_property
    def _held(self):
        return [self._ranks.matrix(frame, features="features") for frame in (self._frame, self._right)]


def compute(matrix):
    """Reads all rows of a result."""
    matrix.to_df().write.format("noop").mode("overwrite").save()
