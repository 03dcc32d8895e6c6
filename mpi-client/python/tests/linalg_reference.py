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
    """Coefficients and intercept."""
    mean = a.mean(0) * intercept
    x = a - mean
    w = numpy.linalg.solve(x.T @ x + l2 * numpy.eye(a.shape[1]), x.T @ (b - b.mean() * intercept)).ravel()
    return w, [intercept * b.mean() - mean @ w]


def lloyd(a, k, seed):
    """The cost of 50 iterations of Lloyd's algorithm from random rows."""
    centers = a[numpy.random.default_rng(seed).choice(len(a), k, replace=False)]
    for _ in range(50):
        labels = ((a[:, None] - centers) ** 2).sum(2).argmin(1)
        centers = numpy.array([a[labels == i].mean(0) if (labels == i).any() else centers[i] for i in range(k)])
    return ((a[:, None] - centers) ** 2).sum(2).min(1).sum()


def nonnegative_factors(a, k, iterations, seed):
    """W and H by hierarchical alternating least squares, from the library's random numbers."""
    scale = 2 * numpy.sqrt(a.mean() / k)
    w = scale * uniform(seed, 0, a.shape[0] * k).reshape(-1, k)
    h = scale * uniform(seed, 1, k * a.shape[1]).reshape(k, -1)
    for _ in range(iterations):
        hh, ah = h @ h.T, a @ h.T
        for j in range(k):
            w[:, j] = numpy.maximum(0, w[:, j] + (ah[:, j] - w @ hh[:, j]) / hh[j, j])
        ww, wa = w.T @ w, w.T @ a
        for j in range(k):
            h[j] = numpy.maximum(0, h[j] + (wa[j] - ww[j] @ h) / ww[j, j])
    return w, h


def random_features(a, features, bandwidth, seed):
    """Random features of the Gaussian kernel, from the library's random numbers."""
    weights = normal(seed, 0, a.shape[1] * features).reshape(-1, features) / bandwidth
    shifts = 2 * numpy.pi * uniform(seed, 1, features)
    return numpy.sqrt(2 / features) * numpy.cos(a @ weights + shifts)


_GOLDEN = numpy.uint64(0x9E3779B97F4A7C15)


def _mix(z):
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def uniform(seed, stream, count):
    """The first numbers of a stream of SplitMix64."""
    seeds, streams = (numpy.array([number], dtype=numpy.uint64) for number in (seed, stream))
    start = _mix(seeds + _GOLDEN) ^ _mix(streams + numpy.array([2], dtype=numpy.uint64) * _GOLDEN)
    index = numpy.arange(1, count + 1, dtype=numpy.uint64)
    return (_mix(start + index * _GOLDEN) >> numpy.uint64(11)).astype(float) * 2.0**-53


def normal(seed, stream, count):
    """The first normal numbers of a stream, by Box and Muller."""
    pairs = uniform(seed, stream, 2 * count).reshape(-1, 2)
    return numpy.sqrt(-2 * numpy.log(1 - pairs[:, 0])) * numpy.cos(2 * numpy.pi * pairs[:, 1])
