"""What routines of libsupply_linalg should compute, by numpy."""

import numpy


def with_positive_largest(vectors):
    """The columns with the sign that makes the largest value positive."""
    largest = numpy.argmax(abs(vectors), axis=0)
    return vectors * numpy.sign(vectors[largest, range(vectors.shape[1])])


def singular_values(a, k):
    """U, S and V of the k largest."""
    u, s, vt = numpy.linalg.svd(a, full_matrices=False)
    v = with_positive_largest(vt.T[:, :k])
    return u[:, :k] * (v * vt.T[:, :k]).sum(0), s[:k], v


def ridge(a, b, l2, intercept):
    """Coefficients and intercept of each column of b; of a single one as an array."""
    mean, mean_of_b = a.mean(0) * intercept, b.mean(0) * intercept
    x = a - mean
    w = numpy.linalg.solve(x.T @ x + l2 * numpy.eye(a.shape[1]), x.T @ (b - mean_of_b))
    return w.ravel() if b.shape[1] == 1 else w, mean_of_b - mean @ w


def fitted(a, b):
    """The columns of b as A and an intercept explain them."""
    w, intercept = ridge(a, b, 0, 1)
    return (a @ w + intercept).reshape(b.shape)


def lloyd(a, k, seed):
    """The cost of 50 iterations of Lloyd's algorithm from random rows."""
    centers = a[numpy.random.default_rng(seed).choice(len(a), k, replace=False)]
    for _ in range(50):
        labels = ((a[:, None] - centers) ** 2).sum(2).argmin(1)
        centers = numpy.array([a[labels == i].mean(0) if (labels == i).any() else centers[i] for i in range(k)])
    return ((a[:, None] - centers) ** 2).sum(2).min(1).sum()
