"""libsupply_linalg by MatrixRanks: each routine against numpy, on 3 ranks, one of which has no rows."""

import os
import re

import numpy
import pytest
from pyspark.ml.linalg import Vectors
from spark_supplier import RunError

import linalg_reference as reference
from rank_server import LINALG, has_slepc, skip_without_linalg, started
from supplier_session import session_fixture

skip_without_linalg()
spark = session_fixture(3)
ROWS, COLUMNS = 90, 12
HAS_SLEPC = has_slepc()
needs_slepc = pytest.mark.skipif(not HAS_SLEPC, reason="libsupply_linalg was built without SLEPc")
# Of the columns of b.
SCALES = numpy.array([1, 0, *10.0 ** numpy.linspace(-6, 6, 38)])
LANCZOS = pytest.param("lanczos", marks=needs_slepc)


@pytest.fixture(scope="module")
def arrays():
    """Matrices with the same number of rows, by name."""
    random = numpy.random.default_rng(1)
    dense = random.normal(size=(ROWS, COLUMNS)) * numpy.linspace(4, 1, COLUMNS) + 3
    centers = random.normal(size=(6, 4)) * 8 + 1e4
    low_rank = random.normal(size=(ROWS, 2)) @ random.normal(size=(2, 5))
    noise = numpy.random.default_rng(3)
    targets = dense @ noise.normal(size=(COLUMNS, 40)) + noise.normal(size=(ROWS, 40))
    # Nothing but rounding is left of the products of one column with those of A.
    targets[:, 3:4] -= reference.fitted(dense, targets[:, 3:4])
    unknown = dense.copy()
    unknown[50, 3] = 1e200
    return {
        "dense": dense,
        "right": random.normal(size=(ROWS, 4)),
        "targets_1": dense @ random.normal(size=(COLUMNS, 1)) + random.normal(size=(ROWS, 1)),
        "targets_3": (targets * SCALES)[:, :3],
        "targets_40": targets * SCALES,
        "points": centers[random.integers(6, size=ROWS)] + random.normal(size=(ROWS, 4)),
        "low_rank": low_rank,
        "low_rank_column": low_rank[:, :1],
        "too_large": unknown,
    }


@pytest.fixture(scope="module")
def ranks(spark):
    with started(spark, LINALG.parent, ranks=3, library=LINALG.name) as ranks:
        yield ranks


def send(spark, ranks, arrays):
    """The arrays as columns of one DataFrame: a matrix of each."""
    rows = [[row.tolist() for row in numbers] for numbers in zip(*arrays.values(), strict=True)]
    schema = ", ".join(f"{name} array<double>" for name in arrays)
    df = spark.createDataFrame(rows, schema).repartition(2).cache()
    try:
        return {name: ranks.matrix(df, name) for name in arrays}
    finally:
        df.unpersist()


@pytest.fixture(scope="module")
def matrices(spark, ranks, arrays):
    return send(spark, ranks, arrays)


@pytest.fixture(scope="module")
def small(spark, ranks):
    """A matrix with a row for each column of `dense`."""
    values = numpy.random.default_rng(2).normal(size=(COLUMNS, 3))
    return send(spark, ranks, {"small": values, "vector": values[:, :1]})


@pytest.fixture(scope="module")
def symmetric(spark, ranks):
    """The order of its rows is that of its columns, so it comes from one partition."""
    a = numpy.random.default_rng(4).normal(size=(40, 40)) + numpy.diag(numpy.arange(40))
    rows = [(row.tolist(),) for row in a + a.T]
    return ranks.matrix(spark.createDataFrame(rows, "row array<double>").coalesce(1), "row")


def call(ranks, routine, *arguments, **parameters):
    results = ranks.call(routine, *arguments, **parameters)
    return [result.to_numpy() for result in results] if isinstance(results, tuple) else results.to_numpy()


def sparse_vectors(a):
    return [Vectors.sparse(len(row), row.nonzero()[0].tolist(), row[row.nonzero()].tolist()) for row in a]


def assert_close(found, expected, tolerance=1e-8):
    """Equal, relative to the norm of what is expected."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.shape == expected.shape
    assert numpy.linalg.norm(found - expected) <= tolerance * numpy.linalg.norm(expected)


def test_gram(ranks, matrices):
    a = matrices["dense"].to_numpy()
    assert_close(call(ranks, "gram", matrices["dense"]), a.T @ a, 1e-14)


def test_column_statistics(ranks, matrices):
    a = matrices["points"].to_numpy()
    mean, variance = call(ranks, "column_statistics", matrices["points"])
    assert_close(mean, a.mean(0), 1e-14)
    assert_close(variance, a.var(0, ddof=1), 1e-12)


@pytest.mark.parametrize("method", ["auto", "gram", LANCZOS])
@pytest.mark.parametrize("k", [2, COLUMNS])
def test_truncated_svd(ranks, matrices, method, k):
    u, s, v = reference.singular_values(matrices["dense"].to_numpy(), k)
    found = call(ranks, "truncated_svd", matrices["dense"], k=k, method=method)
    for one, expected in zip(found, (u, s, v), strict=True):
        assert_close(one, expected)
    assert_close(found[0].T @ found[0], numpy.eye(k), 1e-12)


def test_truncated_svd_of_dependent_columns(ranks, matrices):
    a = matrices["low_rank"].to_numpy()
    u, s, v = call(ranks, "truncated_svd", matrices["low_rank"], k=5, method="gram")
    assert_close(s[:2], numpy.linalg.svd(a)[1][:2])
    assert (s[2:] < 1e-7 * s[0]).all()
    assert_close(u * s @ v.T, a)
    assert_close(u.T @ u, numpy.eye(5), 1e-12)


@pytest.mark.parametrize("method", ["gram", LANCZOS])
def test_pca(ranks, matrices, method):
    a = matrices["dense"].to_numpy()
    u, s, v = reference.singular_values(a - a.mean(0), 3)
    components, variance, mean, scores = call(ranks, "pca", matrices["dense"], k=3, method=method)
    assert_close(components, v)
    assert_close(variance, s**2 / (ROWS - 1))
    assert_close(mean, a.mean(0))
    assert_close(scores, u * s)


def test_multiply_by_rows_and_by_an_array(ranks, matrices, small):
    a, right = matrices["dense"].to_numpy(), matrices["right"].to_numpy()
    assert_close(call(ranks, "multiply", matrices["dense"], small["small"]), a @ small["small"].to_numpy(), 1e-14)
    array = ranks.call("transpose_multiply", matrices["dense"], matrices["right"])
    assert_close(array.to_numpy(), a.T @ right, 1e-14)
    assert_close((matrices["dense"] @ array).to_numpy(), a @ (a.T @ right), 1e-14)
    assert_close((matrices["dense"].T @ matrices["dense"]).to_numpy(), a.T @ a, 1e-14)


@pytest.mark.long
def test_multiply_takes_many_rows_in_parts(ranks, symmetric):
    # Rows of 480 kB: ranks have some of them at a time.
    large = ranks.matrix(numpy.random.default_rng(8).normal(size=(40, 60000)))
    product = (symmetric @ large).to_numpy()
    assert_close(product, symmetric.to_numpy() @ large.to_numpy(), 1e-14)


def assert_ridge(ranks, a, b, expected, **parameters):
    """Each column of b as closely as if it were the only one; the second one is 0."""
    units = numpy.where(SCALES == 0, 1, SCALES)[: b.shape[1]]
    for found, value in zip(call(ranks, "ridge", a, b, tolerance=1e-12, **parameters), expected, strict=True):
        assert_close(found / units, value / units)
        assert b.shape[1] == 1 or not found[..., 1].any()


@pytest.mark.parametrize("method", ["auto", "cholesky", "cg"])
@pytest.mark.parametrize("intercept", [0, 1])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("columns", [1, 3, 40])
def test_ridge(ranks, arrays, matrices, method, intercept, l2, columns):
    targets = f"targets_{columns}"
    expected = reference.ridge(arrays["dense"], arrays[targets], l2, intercept)
    assert_ridge(ranks, matrices["dense"], matrices[targets], expected, l2=l2, intercept=intercept, method=method)


@pytest.mark.parametrize("columns", [1, 40])
def test_ridge_of_sparse_rows(spark, ranks, arrays, columns):
    sparse = numpy.where(abs(arrays["dense"] - 3) > 3, arrays["dense"], 0)
    targets = arrays[f"targets_{columns}"]
    rows = list(zip(sparse_vectors(sparse), targets.tolist(), strict=True))
    df = spark.createDataFrame(rows, ["a", "b"]).repartition(2).cache()
    a, b = ranks.matrix(df, "a", sparse=True), ranks.matrix(df, "b")
    df.unpersist()
    assert_ridge(ranks, a, b, reference.ridge(sparse, targets, 0.5, 1), l2=0.5, intercept=1)


def test_kmeans(ranks, matrices):
    a = matrices["points"].to_numpy()
    centers, labels, cost = call(ranks, "kmeans", matrices["points"], k=6, iterations=50, seed=7, tolerance=0.0)
    squares = ((a[:, None] - centers) ** 2).sum(2)
    assert (labels.ravel() == squares.argmin(1)).all()
    assert_close(cost, [squares.min(1).sum()])
    assert cost[0] <= 1.02 * min(reference.lloyd(a, 6, seed) for seed in range(10))


def test_kmeans_of_equal_rows(ranks, spark):
    ones = send(spark, ranks, {"ones": numpy.ones((5, 2))})["ones"]
    centers, _, cost = call(ranks, "kmeans", ones, k=4)
    assert cost.tolist() == [0]
    assert centers.tolist() == [[1, 1]] * 4


def test_qr(ranks, matrices):
    q, r = numpy.linalg.qr(matrices["dense"].to_numpy())
    signs = numpy.sign(numpy.diag(r))
    found_q, found_r = call(ranks, "qr", matrices["dense"])
    assert_close(found_q, q * signs, 1e-12)
    assert_close(found_r, (r.T * signs).T, 1e-12)


def test_random_features_are_those_of_the_kernel(ranks, matrices):
    a = matrices["right"].to_numpy()
    z = call(ranks, "random_features", matrices["right"], features=20000, bandwidth=2.0, seed=1)
    kernel = numpy.exp(-((a[:, None] - a) ** 2).sum(2) / (2 * 2.0**2))
    assert abs(z @ z.T - kernel).max() < 0.05


def test_the_seed_alone_decides_random_features(ranks, matrices):
    parameters = {"features": 40, "bandwidth": 2.5}
    z = call(ranks, "random_features", matrices["dense"], seed=9, **parameters)
    few = ranks.matrix(matrices["dense"].to_numpy()[:7])
    assert_close(call(ranks, "random_features", few, seed=9, **parameters), z[:7], 1e-13)
    assert abs(call(ranks, "random_features", few, seed=8, **parameters) - z[:7]).max() > 0.1


def test_gram_vector(ranks, matrices, small):
    a, v = matrices["dense"].to_numpy(), small["vector"].to_numpy()
    once = ranks.call("gram_vector", matrices["dense"], small["vector"])
    assert_close(once.to_numpy(), (a.T @ (a @ v)).ravel(), 1e-13)
    expected = a.T @ (a @ once.to_numpy())
    expected = a.T @ (a @ (expected / numpy.linalg.norm(expected)))
    assert_close(call(ranks, "gram_vector", matrices["dense"], once, iterations=2), expected, 1e-13)


@needs_slepc
@pytest.mark.parametrize("which", ["largest", "smallest", "largest_magnitude"])
def test_eigenvalues(ranks, symmetric, which):
    values, vectors = numpy.linalg.eigh(symmetric.to_numpy())
    order = {"largest": -values, "smallest": values, "largest_magnitude": -abs(values)}[which].argsort()[:3]
    found_vectors, found = call(ranks, "eigenvalues", symmetric, k=3, which=which)
    assert_close(found, values[order])
    assert_close(found_vectors, reference.with_positive_largest(vectors[:, order]))


@needs_slepc
def test_sparse_rows(spark, ranks):
    random = numpy.random.default_rng(6)
    a = random.normal(size=(40, 40)) * (random.uniform(size=(40, 40)) < 0.2)
    a += a.T
    vectors = [(vector,) for vector in sparse_vectors(a)]
    sparse = ranks.matrix(spark.createDataFrame(vectors, ["v"]).coalesce(1), "v", sparse=True)
    u, s, v = reference.singular_values(a, 3)
    for one, expected in zip(call(ranks, "truncated_svd", sparse, k=3), (u, s, v), strict=True):
        assert_close(one, expected)
    values, basis = numpy.linalg.eigh(a)
    found_vectors, found = call(ranks, "eigenvalues", sparse, k=2)
    assert_close(found, values[:-3:-1])
    assert_close(found_vectors, reference.with_positive_largest(basis[:, :-3:-1]))
    mean, variance = call(ranks, "column_statistics", sparse)
    assert_close(mean, a.mean(0), 1e-13)
    assert_close(variance, a.var(0, ddof=1), 1e-13)
    right = ranks.call("truncated_svd", sparse, k=2)[0]
    assert_close(call(ranks, "multiply", sparse, right), a @ right.to_numpy())
    z = call(ranks, "random_features", sparse, features=5)
    assert_close(z, call(ranks, "random_features", ranks.matrix(a), features=5), 1e-13)


WRONG = {
    "k is 0: it must be from 1 to 12": lambda ranks, a: ranks.call("pca", a["dense"], k=0),
    "k is 13: it must be from 1 to 12": lambda ranks, a: ranks.call("truncated_svd", a["dense"], k=13),
    "k is 91: it must be from 1 to 90": lambda ranks, a: ranks.call("kmeans", a["dense"], k=91),
    "method is 'x': it must be one of auto, gram": lambda ranks, a: ranks.call("pca", a["dense"], k=1, method="x"),
    "A is 90 × 12, and B is 90 × 4: B must have a row": lambda ranks, a: ranks.call("multiply", a["dense"], a["right"]),
    "A is 90 × 12, and B is 12 × 3: they must have the same number of rows": lambda ranks, a: ranks.call(
        "transpose_multiply", a["dense"], a["small"]
    ),
    "A is 90 × 12, and v is 12 × 3: v must have one": lambda ranks, a: ranks.call(
        "gram_vector", a["dense"], a["small"]
    ),
    "A is 90 × 12: eigenvalues need a square": lambda ranks, a: ranks.call("eigenvalues", a["dense"], k=1),
    "A is not symmetric": lambda ranks, a: ranks.call("eigenvalues", a["square"], k=1),
    "A is 2 × 3: it must have at least as many rows": lambda ranks, a: ranks.call("qr", a["wide"]),
    "A: column 3 .from 0. has a value that is NaN, or too large": lambda ranks, a: ranks.call("gram", a["too_large"]),
    "singular, or nearly": lambda ranks, a: ranks.call("ridge", a["low_rank"], a["low_rank_column"]),
    "did not converge: after 2 iterations a residual is": lambda ranks, a: ranks.call(
        "ridge", a["dense"], a["targets_3"], method="cg", iterations=2
    ),
    "l2 is -1: it must not be negative": lambda ranks, a: ranks.call("ridge", a["dense"], a["targets_1"], l2=-1.0),
    "bandwidth is 0: it must be positive": lambda ranks, a: ranks.call(
        "random_features", a["dense"], features=2, bandwidth=0.0
    ),
}


@pytest.fixture(scope="module")
def all_matrices(spark, ranks, matrices, small):
    square = {"square": numpy.triu(numpy.ones((6, 6)))}
    wide = {"wide": numpy.ones((2, 3))}
    return {**matrices, **small, **send(spark, ranks, square), **send(spark, ranks, wide)}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_parameters(ranks, all_matrices, text):
    if "symmetric" in text and not HAS_SLEPC:
        pytest.skip("libsupply_linalg was built without SLEPc")
    with pytest.raises(RunError, match=text):
        WRONG[text](ranks, all_matrices)


def test_more_memory_than_the_node_has(spark, ranks, matrices):
    """Of the ranks together: the kernel would let each of them have it, and end one when they use it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Each of the three ranks needs columns² values.
    columns = int((memory / 8) ** 0.5)
    many = ranks.matrix(
        spark.range(0, 4, 1, 2).selectExpr(f"transform(sequence(1, {columns}), x -> double(x)) as x"), "x"
    )
    with pytest.raises(RunError) as raised:
        ranks.call("truncated_svd", many, k=2, method="gram")
    told = r"the routine truncated_svd needs ([0-9.]+) GB on node \S+, and [0-9.]+ GB are free"
    (needed,) = re.findall(told, str(raised.value))
    assert float(needed) == pytest.approx(3 * 8 * columns**2 / 1e9, rel=0.01)
    many.release()
    assert ranks.call("gram", matrices["dense"]).shape == (COLUMNS, COLUMNS)


def test_an_array_is_no_matrix_of_rows(ranks, matrices):
    gram = ranks.call("gram", matrices["dense"])
    with pytest.raises(RunError, match="A is a small array, which every rank has: this routine needs rows"):
        ranks.call("gram", gram)
