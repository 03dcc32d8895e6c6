"""MatrixRanks: matrices of a session that real ranks hold, and routines of libraries that a test compiles."""

import numpy
import pytest
from pyspark.ml.linalg import Vectors
from spark_supplier import RunError
from spark_supplier.offload import release

from rank_server import LINALG, NUMBERS, skip_without_server, started
from supplier_session import only_classic, over_connect, session_fixture

skip_without_server()
spark = session_fixture(2)


@pytest.fixture(scope="module")
def ranks(spark, libraries):
    with started(spark, libraries) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def matrix(ranks, numbers):
    return ranks.matrix(numbers, features="features", key="id")


def test_a_routine_of_a_stranger(ranks, matrix):
    sums = ranks.call("column_sums", matrix, factor=2.0, library="libcolumn_sums.so")
    assert matrix.shape == (NUMBERS, 3)
    assert sums.to_numpy().tolist() == [9900.0, 200.0, 2.0 * sum(i * i for i in range(NUMBERS))]


@pytest.mark.parametrize("library", [1, 2])
def test_a_library_keeps_its_names_to_itself(ranks, library):
    values = ranks.call("names", library=f"libnames_{library}.so").to_numpy()
    assert values.tolist() == [library, library + 10, library + 20, library + 30]


def test_a_library_of_another_header_is_refused(ranks):
    with pytest.raises(RunError, match=r"libnames_old\.so .*compile it again with supply_routine\.h of this version"):
        ranks.call("names", library="libnames_old.so")


def test_rows_come_back_as_they_were(ranks, matrix):
    rows = matrix.to_numpy()
    assert sorted(rows.tolist()) == [[float(i), 1.0, float(i * i)] for i in range(NUMBERS)]
    assert (ranks.call("copy", matrix).to_numpy() == rows).all()


def test_arrays_are_matrices(spark, ranks):
    values = numpy.random.default_rng(1).normal(size=(37, 5))
    for array in (values, numpy.asfortranarray(values), values.astype(">f8"), values.astype("float32")):
        matrix = ranks.matrix(array)
        assert matrix.shape == (37, 5) and (matrix.to_numpy() == array).all()
    integers = ranks.matrix(numpy.arange(7, dtype="int32"))
    assert integers.shape == (7, 1) and integers.to_numpy().tolist() == [[float(i)] for i in range(7)]
    rows = integers.to_df()
    assert rows.where("row[0] = key").count() == 7
    release(rows)
    # Fewer rows than ranks.
    assert ranks.matrix(numpy.ones((1, 3))).to_numpy().tolist() == [[1.0] * 3]


def test_arrays_that_are_no_matrices(ranks):
    for array, text in (
        (numpy.ones((2, 2, 2)), r"the shape \(2, 2, 2\)"),
        (numpy.ones((0, 3)), r"the shape \(0, 3\)"),
        (numpy.ones(2, complex), "cannot be a matrix of ranks"),
        (numpy.array([[1, numpy.nan]]), "(?i)nan"),
        (numpy.ma.MaskedArray([[1.0, 2.0]], [[False, True]]), r"has masked values.*data.filled\(0\)"),
    ):
        with pytest.raises(RunError, match=text):
            ranks.matrix(array)
    matrix = ranks.matrix(numpy.ones((2, 2)))
    with pytest.raises(TypeError, match="unsupported operand type|does not support ufuncs"):
        numpy.eye(2) @ matrix
    for product in (lambda: matrix @ numpy.eye(2), lambda: matrix.T @ numpy.eye(2)):
        with pytest.raises(RunError, match=r"an argument is an array of shape \(2, 2\): make a matrix of it"):
            product()
    for array in (numpy.eye(3), numpy.ones(1), numpy.ones((2, 3), "f4")):
        with pytest.raises(RunError, match=r"an argument is an array of shape \(\d, ?\d?\).*: make a matrix of it"):
            ranks.call("gram", array)
    for value, fix in (
        (None, "leave it out"),
        (1j, "give a matrix"),
        (numpy.complex64(2), "give a matrix"),
        (True, "give"),
    ):
        with pytest.raises(RunError, match=f"an argument is .*: {fix}"):
            ranks.call("gram", matrix, k=value)
    assert ranks.matrix(numpy.ma.MaskedArray([[1.0, 2.0]], False)).to_numpy().tolist() == [[1, 2]]
    with pytest.raises(RunError, match="leave out features and key"):
        ranks.matrix(numpy.ones(3), key="id")


def test_a_large_array_is_sent_in_parts(ranks):
    values = numpy.arange(160 << 17, dtype="float64").reshape(-1, 64)
    sums = ranks.call("column_sums", ranks.matrix(values), library="libcolumn_sums.so")
    assert (sums.to_numpy() == values.sum(0)).all()


def test_tensors_to_ranks_and_back(ranks):
    """On the GPU, if there is one."""
    torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(30, 4, device=device, requires_grad=True)
    matrix = ranks.matrix(x)
    back = matrix.to_torch(device)
    assert back.dtype == torch.float64 and back.device == x.device and torch.equal(back, x.double())
    back.zero_()
    assert torch.equal(matrix.to_torch(), x.double().cpu())


def test_sparse_rows_of_an_array(ranks):
    values = numpy.random.default_rng(2).normal(size=(9, 4)) * [1, 0, 1, 0]
    matrix = ranks.matrix(values, sparse=True)
    assert matrix.shape == (9, 4)
    assert ranks.call("entries", matrix).to_numpy() == pytest.approx(values.sum(0))


@pytest.mark.skipif(not over_connect(), reason="only of Spark Connect")
def test_spark_connect_has_no_distributed_matrices(ranks, matrix):
    for convert in (matrix.to_row_matrix, matrix.to_coordinate_matrix):
        with pytest.raises(RunError, match=r"which Spark Connect does not have: pass a DataFrame, and take to_df\(\)"):
            convert()
    assert (matrix.to_local().toArray() == matrix.to_numpy()).all()


def test_rows_come_back_with_their_keys(spark, ranks, matrix):
    df = ranks.call("copy", matrix).to_df()
    assert df.schema.simpleString() == "struct<key:bigint,row:array<double>>"
    assert df.where("row = array(double(key), 1, double(key * key))").count() == NUMBERS
    array = ranks.call("column_sums", matrix, library="libcolumn_sums.so").to_df()
    assert [row["row"] for row in array.collect()] == [[4950.0, 100.0, 328350.0]]
    for read in (df, array):
        release(read)


def test_text_is_a_key(spark, ranks):
    df = spark.range(50).selectExpr("repeat('ü', int(id)) as name", "double(id) as x")
    rows = ranks.matrix(df, features="x", key="name").to_df()
    assert rows.where("length(key) = row[0]").count() == 50
    release(rows)


def test_keys_come_back_from_ranks_without_rows(spark, ranks, numbers):
    texts = spark.createDataFrame([("a", 1.0)], ["name", "x"]).coalesce(1)
    for df, features, key, count in ((numbers.coalesce(1), "features", "id", NUMBERS), (texts, "x", "name", 1)):
        rows = ranks.matrix(df, features=features, key=key).to_df()
        assert rows.columns == ["key", "row"]
        assert rows.count() == count
        release(rows)


def test_columns_of_numbers_are_rows_of_a_matrix(ranks, numbers):
    rows = ranks.matrix(numbers, features=["twice", "id"]).to_numpy()
    assert sorted(rows.tolist()) == [[2.0 * i, float(i)] for i in range(NUMBERS)]


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)"])
def test_numbers_of_all_types_become_doubles(ranks, numbers, kind):
    rows = ranks.matrix(numbers.selectExpr(f"array(cast(id as {kind}), cast(-3 as {kind})) as x"), "x").to_numpy()
    assert sorted(rows.tolist()) == [[float(i), -3.0] for i in range(NUMBERS)]


def test_vectors_of_spark_ml_are_rows_of_a_matrix(spark, ranks):
    df = spark.createDataFrame([(Vectors.dense(1, 2),), (Vectors.sparse(2, [1], [3.0]),)], ["vector"])
    assert sorted(ranks.matrix(df, features="vector").to_numpy().tolist()) == [[0.0, 3.0], [1.0, 2.0]]


def test_sparse_vectors_are_a_sparse_matrix(spark, ranks):
    rows = [(Vectors.sparse(4, {1: 3.0, 3: -1.0}),), (Vectors.dense(0, 0, 2, 0),), (Vectors.sparse(4, {}),)]
    matrix = ranks.matrix(spark.createDataFrame(rows, ["vector"]), features="vector", sparse=True)
    assert matrix.shape == (3, 4)
    assert ranks.call("entries", matrix).to_numpy().tolist() == [0.0, 3.0, 2.0, -1.0]
    with pytest.raises(RunError, match="a sparse matrix cannot be fetched"):
        matrix.to_numpy()
    with pytest.raises(RunError, match="a sparse matrix comes from one column of vectors"):
        ranks.matrix(spark.range(3), features=["id"], sparse=True)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (4, 4, 0)])
def test_sparse_vectors_of_other_sizes_are_refused(spark, ranks, sizes):
    df = spark.createDataFrame([(Vectors.sparse(size, {}),) for size in sizes], ["vector"]).coalesce(1)
    with pytest.raises(
        RunError, match=f"a vector has the size {sizes[-1]}, and the first one has {sizes[0]}: give all"
    ):
        ranks.matrix(df, features="vector", sparse=True)


def test_a_sparse_matrix_may_have_no_entries(spark, ranks):
    df = spark.createDataFrame([(Vectors.sparse(4, {}),)] * 4, ["vector"])
    matrix = ranks.matrix(df, features="vector", sparse=True)
    assert matrix.shape == (4, 4)
    assert ranks.call("entries", matrix).to_numpy().tolist() == [0.0] * 4


def test_more_ranks_than_rows(ranks, spark):
    one = ranks.matrix(spark.range(1).selectExpr("array(5.0D) as x"), features="x")
    assert one.to_numpy().tolist() == [[5.0]]
    assert ranks.call("column_sums", one, library="libcolumn_sums.so").to_numpy().tolist() == [5.0]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda ranks, df, a: ranks.call("nothing", a),
            "has no routine 'nothing'; it has: crash fail leave wait copy forget hoard entries",
        ),
        (lambda ranks, df, a: ranks.call("copy", a, library="libnone.so"), "cannot load the library libnone.so"),
        (lambda ranks, df, a: ranks.call("copy", a, library="../libroutines.so"), "is no file name of a library"),
        (lambda ranks, df, a: ranks.call("copy"), "needs the parameter 'A', a matrix"),
        (lambda ranks, df, a: ranks.call("copy", 3), "parameter 'A' of the routine copy is a matrix, not 3"),
        (lambda ranks, df, a: ranks.call("copy", a, B=1), "has no parameter 'B'; it has: A"),
        (lambda ranks, df, a: ranks.call("copy", a, A=a), "parameter 'A' of the routine copy is given twice"),
        (lambda ranks, df, a: ranks.call("fail", rank="one"), 'is an integer, not "one"'),
        (lambda ranks, df, a: ranks.call("fail"), 'rank 1: no "luck" today'),
        (lambda ranks, df, a: ranks.call("forget"), "has not made its result 'B'"),
        (lambda ranks, df, a: ranks.call("hoard", a), "needs 4398.0 GB|needs 439804.7 GB|GB are free there"),
        (lambda ranks, df, a: ranks.call("hoard_alone"), "rank 1: a result .* needs .* GB on node"),
        (lambda ranks, df, a: ranks.call("mumble"), r"caf\? closed"),
        (lambda ranks, df, a: ranks.matrix(df, "feature"), "there is no column 'feature'; there are id, features"),
        (lambda ranks, df, a: ranks.matrix(df, ["id", "features"]), "column 'features' is array<.*>, not a number"),
        (lambda ranks, df, a: ranks.matrix(df.where("id < 0"), "features"), "the DataFrame has no rows"),
        (
            lambda ranks, df, a: ranks.matrix(
                df.selectExpr("id", "array(if(id = 7, double('nan'), 1)) as x"), "x", "id"
            ),
            "the row with key 7 has NaN in place 0",
        ),
        (
            lambda ranks, df, a: ranks.matrix(
                df.selectExpr("'x' || repeat('ü', 99) as k", "sqrt(-1) as x"), ["x"], "k"
            ),
            "the row with key 'xü+' has NaN in place 0",
        ),
        (
            lambda ranks, df, a: ranks.matrix(
                df.selectExpr("id", "if(id = 7, array(1, 2, 3), array(1, 2)) as x"), "x", "id"
            ),
            "the row with key 7 has 3 numbers, and the first row has 2: all rows of a matrix have the same length",
        ),
        (
            lambda ranks, df, a: ranks.matrix(
                df.sparkSession.range(0, 100, 1, 2).selectExpr("sequence(1, if(id < 50, 2, 3)) as x"), "x"
            ),
            "row 0 of rank 0 has 2 numbers, and rows of another rank have 3",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("slice(features, 1, 0) as x"), "x"),
            "the rows are empty: a matrix needs at least one column",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("id", "if(id = 7, null, features) as x"), "x"),
            "column 'row' has (a|an array with a) null",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("if(id = 7, null, id) as k", "features"), "features", "k"),
            "column 'key' has a null",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("if(id = 99, 3, id) as k", "features"), "features", "k"),
            r"the key 3 \(rank [01]\) is in more than one row",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("'ü' || id % 99 as k", "features"), "features", "k"),
            r"the key 'ü0' \(rank [01]\) is in more than one row",
        ),
        # Nothing is computed: that would fail.
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("make_interval(raise_error('computed')) as x"), "x"),
            "column 'x' is interval, not .*: cast it, or choose another",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("features", "make_interval(id) as k"), "features", "k"),
            r"a column cannot be supplied as it is \('k' is interval, use cast\(k as string\)",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.selectExpr("id > 0 as k", "features"), "features", "k"),
            "column 'key' has booleans or lists",
        ),
        (
            lambda ranks, df, a: ranks.matrix(df.sparkSession.range(10**13), ["id"], "id"),
            r"the matrix needs 160000.0 GB on node \S+, and [0-9.]+ GB are free there",
        ),
        (lambda ranks, df, a: ranks.call("twice"), "the routine twice makes its result 'B' twice"),
        (lambda ranks, df, a: ranks.call("fail", rank="x" * (2 << 20)), "the command has more than 1 MiB"),
    ],
)
def test_bad_input_leaves_other_handles_as_they_were(ranks, numbers, matrix, wrong, text):
    with pytest.raises(RunError, match=text):
        wrong(ranks, numbers, matrix)
    assert ranks.call("copy", matrix).shape == (NUMBERS, 3)


def test_rows_that_are_refused_wait_for_no_last_words_of_the_ranks(ranks, numbers, monkeypatch):
    monkeypatch.setattr(ranks._server, "last_words", lambda: pytest.fail("the ranks have not ended"))
    with pytest.raises(RunError, match="has NaN in place 0"):
        ranks.matrix(numbers.selectExpr("sqrt(-1) as x"), ["x"])


def test_a_message_that_a_routine_leaves_reaches_no_other_call(ranks):
    ranks.call("litter")
    assert ranks.call("tidy").to_numpy().tolist() == [2.0]


@only_classic("it asks a class of the JVM")
def test_spark_knows_how_many_rows_it_has_computed(spark):
    even = spark.range(1000).where("id % 2 = 0").cache()

    def expected_rows():
        return spark._jvm.supply.linalg.ExpectedRows.count(even.selectExpr("double(id) as x")._jdf)

    assert expected_rows() == 0
    even.count()
    assert expected_rows() == 500
    even.unpersist()


def test_more_than_the_driver_takes_is_refused(ranks):
    array = ranks.call("large", columns=1 << 28)
    with pytest.raises(RunError, match=r"has 2\.1 GB, and the driver takes at most 2 GiB"):
        array.to_numpy()


def test_a_dropped_handle_is_refused(ranks, numbers):
    gone = ranks.matrix(numbers, features=["id"])
    assert repr(gone) == f"<Matrix {NUMBERS} x 1>"
    gone.release()
    assert repr(gone) == f"<Matrix {NUMBERS} x 1, released>"
    with pytest.raises(RunError, match="there is no matrix"):
        ranks.call("copy", gone)


def test_a_handle_that_python_forgets_is_freed(ranks, numbers):
    forgotten = ranks.matrix(numbers, features=["id"])
    held = forgotten._held
    del forgotten
    ranks.call("column_sums", ranks.matrix(numbers, features=["id"]), library="libcolumn_sums.so")
    with pytest.raises(Exception, match="it was dropped|have no matrix"):
        held.read()


def test_a_matrix_of_other_ranks_is_refused(spark, libraries, ranks, matrix):
    with started(spark, libraries, ranks=1) as others, pytest.raises(RunError, match="belongs to other ranks"):
        assert repr(others) == "<MatrixRanks: 1 ranks, open>"
        others.call("copy", matrix)
    assert repr(others) == "<MatrixRanks: 1 ranks, closed>"


@pytest.mark.skipif(not LINALG.exists(), reason="libsupply was built without OpenBLAS")
def test_libraries_of_the_user_stand_beside_those_installed(ranks, numbers):
    """The folder of `ranks` has no libsupply_linalg."""
    a = ranks.matrix(numbers, features="features")
    assert ranks.call("gram", a, library="libsupply_linalg.so").to_numpy().shape == (3, 3)
    assert ranks.call("column_sums", a, factor=1.0, library="libcolumn_sums.so").to_numpy().shape[-1] == 3
