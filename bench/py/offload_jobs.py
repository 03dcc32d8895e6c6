"""What bench/offload measures: each job's ways, the first one ours, and how far apart their answers are."""

from typing import NamedTuple

import numpy

K = 20
CLUSTERS, LLOYD_ITERATIONS = 50, 10
L2 = 1.0
# A number that doubles hold without scaling, and about what Lanczos takes for 20 vectors.
GRAM_ITERATIONS = 50


class Job(NamedTuple):
    """ours: of OnRanks. theirs: name → of a Matrix of offload_driver. difference: of both answers, at most `limit`.

    per: times are divided by it.
    """

    ours: object
    theirs: dict
    difference: object
    limit: float
    per: int = 1


def relative(name):
    def difference(ours, theirs):
        # The route by PCA has other values: those of the job pca are compared.
        if name not in theirs:
            return 0.0
        return float(numpy.max(numpy.abs(ours[name] - theirs[name])) / numpy.max(numpy.abs(theirs[name])))

    return difference


def directions(name):
    """1 − |cosine| of columns, whose sign is arbitrary."""

    def difference(ours, theirs):
        left, right = unit_columns(ours[name]), unit_columns(theirs[name])
        return float(numpy.max(numpy.abs(1 - numpy.abs((left * right).sum(axis=0)))))

    return difference


def unit_columns(values):
    columns = values.reshape(len(values), -1)
    # Their squares may be too large for doubles.
    columns = columns / numpy.abs(columns).max(axis=0)
    return columns / numpy.linalg.norm(columns, axis=0)


JOBS = {
    "truncated_svd": Job(
        lambda ranks: ranks.truncated_svd(K),
        {"computeSVD": lambda matrix: matrix.mllib.compute_svd(K), "PCA": lambda matrix: matrix.mllib.pca(K)},
        relative("singular values"),
        1e-6,
    ),
    "pca": Job(lambda ranks: ranks.pca(K), {"PCA": lambda matrix: matrix.mllib.pca(K)}, directions("components"), 1e-6),
    "kmeans": Job(
        lambda ranks: ranks.kmeans(CLUSTERS, LLOYD_ITERATIONS),
        {"block": lambda matrix: matrix.mllib.kmeans(CLUSTERS, LLOYD_ITERATIONS)},
        relative("cost"),
        # Both begin at random.
        0.05,
    ),
    "ridge": Job(
        lambda ranks: ranks.ridge(L2),
        {
            "normal": lambda matrix: matrix.mllib.ridge("normal", L2),
            "l-bfgs": lambda matrix: matrix.mllib.ridge("l-bfgs", L2),
        },
        relative("coefficients"),
        # The tolerance of l-bfgs.
        1e-3,
    ),
    "gram_vector": Job(
        lambda ranks: ranks.gram_vector(GRAM_ITERATIONS),
        {"multiplyGramianMatrixBy": lambda matrix: matrix.mllib.gram_vector(matrix.right.ravel(), GRAM_ITERATIONS)},
        directions("vector"),
        1e-6,
        GRAM_ITERATIONS,
    ),
}
