"""The jobs of bench/offload on MPI ranks: a DataFrame in, numpy arrays and a DataFrame out."""


class OnRanks:
    """ranks: supply.spark.Ranks. frame: of offload_data. ones: a DataFrame with a row of 1 for each column."""

    def __init__(self, ranks, frame, ones):
        self._ranks, self._frame, self._ones = ranks, frame, ones

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
        matrix = self._ranks.matrix(self._frame, features="features")
        vector = self._ranks.matrix(self._ones, features="one")
        return {"vector": self._ranks.call("gram_vector", matrix, vector, iterations=iterations).to_numpy()}


def compute(matrix):
    """Reads all rows of a result."""
    matrix.to_numpy()
