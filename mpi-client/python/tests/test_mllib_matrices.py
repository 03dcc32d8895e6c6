"""Distributed matrices of MLlib to real ranks, and back."""

import gc
import os
import shutil
import sys
import time
from unittest import mock

import numpy
import pytest
from pyspark.mllib.linalg import DenseMatrix
from pyspark.mllib.linalg.distributed import CoordinateMatrix, MatrixEntry
from spark_supplier import RunError
from spark_supplier.offload import MatrixRanks, release

from rank_server import LINALG, SERVER, skip_without_linalg
from supplier_session import session_fixture, shared_memory

skip_without_linalg()
spark = session_fixture(3)
ROWS, COLUMNS, RANKS = 23, 4, 2
VALUES = numpy.random.default_rng(1).normal(size=(ROWS, COLUMNS))
VALUES[5] = 0
VALUES[7, 1] = 0


@pytest.fixture(scope="module", autouse=True)
def python_of_workers():
    """PySpark's workers need numpy."""
    with mock.patch.dict(os.environ, PYSPARK_PYTHON=sys.executable):
        yield


@pytest.fixture(scope="module")
def ranks(spark):
    with shared_memory() as folder:
        with MatrixRanks(spark, RANKS, libraries=LINALG.parent, server=SERVER, folder=folder, timeout=60) as ranks:
            yield ranks
        # Rows that tests have read stay until the session's end.
        for rows in os.listdir(folder):
            shutil.rmtree(f"{folder}/{rows}")


def row_matrix(spark):
    from pyspark.mllib.linalg.distributed import RowMatrix

    return RowMatrix(spark.sparkContext.parallelize(VALUES.tolist(), 5))


def indexed(spark, order=range(ROWS), first=0):
    from pyspark.mllib.linalg.distributed import IndexedRow, IndexedRowMatrix

    rows = [IndexedRow(first + i, VALUES[i].tolist()) for i in order]
    return IndexedRowMatrix(spark.sparkContext.parallelize(rows, 5))


def coordinates(spark):
    from pyspark.mllib.linalg.distributed import CoordinateMatrix, MatrixEntry

    entries = [MatrixEntry(int(i), int(j), VALUES[i, j]) for i, j in zip(*VALUES.nonzero())]
    return CoordinateMatrix(spark.sparkContext.parallelize(entries[::-1], 5), ROWS, COLUMNS)


MATRICES = {
    "RowMatrix": row_matrix,
    "IndexedRowMatrix": indexed,
    "unordered IndexedRowMatrix": lambda spark: indexed(spark, range(ROWS - 1, -1, -1)),
    "CoordinateMatrix": coordinates,
    "BlockMatrix": lambda spark: coordinates(spark).toBlockMatrix(5, 3),
}


def close(found, expected):
    assert numpy.asarray(found).shape == numpy.asarray(expected).shape
    assert numpy.linalg.norm(found - expected) <= 1e-12 * max(1, numpy.linalg.norm(expected))
    return True


@pytest.fixture(scope="module")
def square(spark, ranks):
    return ranks.matrix(indexed_of(spark, VALUES @ VALUES.T))


@pytest.fixture(scope="module")
def identity(spark, ranks):
    return ranks.matrix(indexed_of(spark, numpy.eye(COLUMNS)))


# The rows of an ordered matrix come as those of an unordered one.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind == "IndexedRowMatrix" else ()) for kind in MATRICES]
)
def test_rows_are_on_the_ranks_in_the_order_of_their_index(spark, ranks, square, kind):
    matrix = ranks.matrix(MATRICES[kind](spark))
    assert matrix.shape == (ROWS, COLUMNS)
    assert (matrix.to_numpy() == VALUES).all()
    # A row of the right side belongs to a column of the left one, so the order of rows matters.
    close((square @ matrix).to_numpy(), VALUES @ VALUES.T @ VALUES)


def indexed_of(spark, values):
    from pyspark.mllib.linalg.distributed import IndexedRow, IndexedRowMatrix

    rows = [IndexedRow(i, row.tolist()) for i, row in enumerate(values)]
    return IndexedRowMatrix(spark.sparkContext.parallelize(rows, 3))


@pytest.mark.long
@pytest.mark.parametrize("kind", MATRICES)
def test_sparse_rows(spark, ranks, identity, kind):
    matrix = ranks.matrix(MATRICES[kind](spark), sparse=True)
    assert matrix.shape == (ROWS, COLUMNS)
    product = ranks.call("multiply", matrix, identity)
    assert (product.to_numpy() == VALUES).all()


@pytest.mark.long
def test_missing_rows_of_an_indexed_row_matrix_are_not_sent(spark, ranks):
    matrix = ranks.matrix(indexed(spark, [20, 3, 11], first=1 << 40))
    assert (matrix.to_numpy() == VALUES[[3, 11, 20]]).all()
    rows = sorted((row.index, row.vector.toArray().tolist()) for row in matrix.to_indexed_row_matrix().rows.collect())
    assert rows == [((1 << 40) + i, VALUES[i].tolist()) for i in (3, 11, 20)]


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in MATRICES if kind != "RowMatrix"])
def test_every_type_comes_back(spark, ranks, kind):
    matrix = ranks.matrix(MATRICES[kind](spark))
    back = matrix.to_indexed_row_matrix()
    assert (back.numRows(), back.numCols()) == (ROWS, COLUMNS)
    for distributed in (
        back.toBlockMatrix(),
        matrix.to_block_matrix(4, 3),
        matrix.to_coordinate_matrix().toBlockMatrix(),
    ):
        assert (distributed.toLocalMatrix().toArray() == VALUES).all()
    assert matrix.to_block_matrix(4, 3).rowsPerBlock == 4
    assert [row.toArray().tolist() for row in matrix.to_row_matrix().rows.collect()] == VALUES.tolist()
    assert (matrix.to_local().toArray() == VALUES).all()


@pytest.mark.long
def test_results_come_back_as_those_of_mllib(spark, ranks):
    matrix = indexed(spark)
    svd = matrix.computeSVD(3, computeU=True)
    u, s, v = ranks.call("truncated_svd", ranks.matrix(matrix), k=3)
    close(s.to_numpy(), svd.s.toArray())
    signs = numpy.sign((svd.V.toArray() * v.to_local().toArray()).sum(0))
    close(v.to_local().toArray() * signs, svd.V.toArray())
    rows = {row.index: row.vector.toArray() for row in svd.U.rows.collect()}
    for row in u.to_indexed_row_matrix().rows.collect():
        assert numpy.linalg.norm(row.vector.toArray() * signs - rows[row.index]) < 1e-8
    assert isinstance(v.to_local(), DenseMatrix)
    # MLlib multiplies by what came from ranks.
    close(matrix.multiply(v.to_local()).toBlockMatrix().toLocalMatrix().toArray(), VALUES @ v.to_numpy())


def test_an_array_has_the_numbers_of_its_rows_as_indices(spark, ranks):
    gram = ranks.call("gram", ranks.matrix(row_matrix(spark)))
    back = gram.to_indexed_row_matrix()
    assert (back.numRows(), back.numCols()) == (COLUMNS, COLUMNS)
    close(gram.to_block_matrix().toLocalMatrix().toArray(), row_matrix(spark).computeGramianMatrix().toArray())
    close(numpy.array([row.toArray() for row in gram.to_row_matrix().rows.collect()]), VALUES.T @ VALUES)


def test_rows_without_keys_and_with_text_as_keys(spark, ranks):
    matrix = ranks.matrix(row_matrix(spark))
    assert (matrix.to_row_matrix().numRows(), matrix.to_row_matrix().numCols()) == (ROWS, COLUMNS)
    for convert in (matrix.to_indexed_row_matrix, matrix.to_coordinate_matrix, matrix.to_block_matrix):
        with pytest.raises(RunError, match="have no keys, and MLlib needs an index for each"):
            convert()
    text = ranks.matrix(spark.range(3).selectExpr("string(id) as name", "double(id) as x"), ["x"], "name")
    with pytest.raises(RunError, match="keys of Matrix .* are string, and MLlib's indices are integers"):
        text.to_indexed_row_matrix()


def test_integers_are_indices(spark, ranks):
    df = spark.range(4).selectExpr("cast(id as short) as number", "double(id) as x")
    back = ranks.matrix(df, ["x"], "number").to_indexed_row_matrix()
    assert sorted((row.index, row.vector[0]) for row in back.rows.collect()) == [(i, float(i)) for i in range(4)]


@pytest.mark.long
def test_bad_matrices_are_refused_and_others_stay(spark, ranks):
    def entries(*entries):
        rdd = spark.sparkContext.parallelize([MatrixEntry(*entry) for entry in entries], 2)
        return CoordinateMatrix(rdd, 3, 3)

    kept = ranks.matrix(indexed(spark))
    for matrix, text in (
        (indexed(spark, [0, 1, 2, 3, 2, 4]), "the key 2 .* is in more than one row"),
        (entries((1, 1, 1.0), (1, 1, 2.0)), "the entry in row 1, column 1 is there twice"),
        (entries((1, 5, 1.0)), "entries in row 1, columns 5 to 5, and the matrix is 3 × 3"),
        (entries((1, 2, float("nan"))), "the row with key 1 has NaN in place 2"),
    ):
        with pytest.raises(RunError, match=text):
            ranks.matrix(matrix)
    with pytest.raises(RunError, match="a CoordinateMatrix has rows and indices of its own: leave out features"):
        ranks.matrix(coordinates(spark), "features")
    with pytest.raises(RunError, match="features is not set"):
        ranks.matrix(spark.range(3))
    assert (kept.to_numpy() == VALUES).all()


@pytest.mark.long
def test_rows_that_mllib_has_outlive_the_ranks_until_they_are_released(spark):
    with shared_memory() as folder:
        with MatrixRanks(spark, RANKS, libraries=LINALG.parent, server=SERVER, folder=folder, timeout=60) as ranks:
            matrix = ranks.matrix(indexed(spark))
            rows = matrix.to_indexed_row_matrix()
            derived = [
                matrix.to_row_matrix(),
                matrix.to_coordinate_matrix(),
                matrix.to_indexed_row_matrix().toBlockMatrix(),
            ]
            del matrix
            collect_garbage(spark)
            with pytest.raises(RunError, match="reads no rows of ranks"):
                release(indexed(spark))
        assert (rows.toBlockMatrix().toLocalMatrix().toArray() == VALUES).all()
        for left, read in enumerate([*derived, rows]):
            assert len(os.listdir(folder)) == len(derived) + 1 - left
            release(read)
        assert not os.listdir(folder)


def collect_garbage(spark):
    for _ in range(5):
        gc.collect()
        spark._jvm.System.gc()
        time.sleep(0.3)
