"""What users give to Supplier.run and Ranks by mistake is named in their words, before ranks start."""

import functools
import pathlib
import re
import threading
from typing import Any

import pytest
from pyspark.sql.functions import col
from spark_supplier import Cache, Mpirun, Rows, RunError, Shuffle, Supplier
from spark_supplier.driver.call_rows import CallRows
from spark_supplier.offload import MatrixRanks

from supplier_session import call, over_connect, rows, session_fixture, shared_memory

RANKS, ROWS = 2, 100

spark = session_fixture(RANKS + 1)


def train(data, *args, **kwargs):
    raise AssertionError("no rank may start")


@pytest.fixture
def refuses(spark):
    """A function: run() with these arguments raises a RunError that says this."""
    with shared_memory() as folder:

        def refused(says, function=train, df=None, **options):
            frame = rows(spark, ROWS) if df is None else df
            with pytest.raises(RunError, match=says):
                call(function, frame, **{"ranks": RANKS, "folder": folder, **options})

        yield refused


def test_arguments_reach_the_function(spark, tmp_path, capfd):
    """The user's parameters may be named as options of run."""

    def learn(data, /, first, epochs=3, seed=0, *rest, batch_size, timeout="none", **others):
        return first, epochs, seed, rest, batch_size, timeout, others, len(list(data))

    df = rows(spark, ROWS)
    supplier = Supplier(ranks=RANKS, backend=None)
    options: dict[str, Any] = {"batch_size": ROWS, "epochs": 2, "uneven": "keep"}
    given = {"batch_size": 7, "columns": "mine", "kwargs": 1}
    # One of two epochs was read.
    assert supplier.run(learn, Rows(df, **options), "a", 5, **given) == (
        "a", 5, 0, (), 7, "none", {"columns": "mine", "kwargs": 1}, 1,
    )  # fmt: skip
    script = tmp_path / "train.py"
    script.write_text(
        "import argparse, spark_supplier\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('source')\n"
        "parser.add_argument('--epochs', type=int)\n"
        "parser.add_argument('--batch-size')\n"
        "print('given', vars(parser.parse_args()), sum(1 for _ in spark_supplier.data().epochs()))\n"
    )
    supplier.run(str(script), Rows(df, **options), "x y", epochs=5, batch_size=8)
    output = [line for line in capfd.readouterr().out.splitlines() if "given" in line]
    assert sorted(output) == [
        f"[rank {rank}] given {{'source': 'x y', 'epochs': 5, 'batch_size': '8'}} 2" for rank in range(RANKS)
    ]


def test_arguments_that_the_function_does_not_take(refuses):
    def learn(data, rate, epochs=3):
        raise AssertionError

    refuses(r"learn\(data, rate, epochs=3\) cannot be called .*: missing a required argument: 'rate'", learn)
    refuses("unexpected keyword argument 'epoch'", learn, kwargs={"rate": 1, "epoch": 5})
    refuses("too many positional arguments", learn, args=(1, 2, 3))
    refuses("multiple values for argument 'rate'", learn, args=(1,), kwargs={"rate": 2})
    refuses("multiple values for argument 'data'", learn, args=(1,), kwargs={"data": 2})


def test_an_option_in_the_wrong_place(refuses):
    def learn(data, rate=1):
        raise AssertionError

    for given, says in (
        (
            {"batch_size": 5},
            r"got an unexpected keyword argument 'batch_size'. 'batch_size': use Rows\(df, batch_size=…",
        ),
        ({"ring": 5}, r"'ring': use Supplier\(ranks, ring=…\)"),
        ({"buffer": 5}, r"'buffer': use Rows\(df, shuffle=Shuffle\(…, buffer=…\)\)"),
        ({"quota": 5}, r"'quota': use Rows\(df, cache=Cache\(folder, quota=…\)\)"),
        ({"every": 5}, r"'every': use Supplier\(ranks, checkpoints=Checkpoints\(folder, every=…\)\)"),
        ({"host_file": "x"}, r"'host_file': use Supplier\(ranks, launcher=Mpirun\(host_file=…\)\)"),
        ({"epoch": 5}, "'epoch': did you mean 'epochs'"),
        ({"batchSize": 5}, "'batchSize': did you mean 'batch_size'"),
        ({"rates": 5}, "'rates': did you mean 'rate'"),
        ({"momentum": 5}, "got an unexpected keyword argument 'momentum'$"),
    ):
        refuses(says, learn, kwargs=given)


def test_parameters_that_are_options_of_run(refuses, spark):
    def learn(data, results, rate=1):
        return results, rate

    def learn_again(data, rate, *, resume=False):
        return resume, rate

    says = (
        r"learn\(data, results, rate=1\) has a parameter 'results', which is an option of Supplier.run: pass .*partial"
    )
    refuses(says, learn)
    refuses("functools.partial.learn_again, resume=…", learn_again, args=(1,))
    refuses("functools.partial", functools.partial(learn_again, 1))
    with shared_memory() as folder:
        supplier = Supplier(ranks=1, folder=folder, backend=None)
        assert supplier.run(functools.partial(learn, results="mine"), rows(spark, ROWS), rate=2) == ("mine", 2)
        assert supplier.run(lambda data, results, /: results, rows(spark, ROWS), "mine") == "mine"


@pytest.mark.parametrize("name", ["df", "validation"])
def test_what_is_no_dataframe_of_spark(refuses, spark, name):
    import pandas
    import pyarrow

    frame = pandas.DataFrame({"id": [1]})
    table = pyarrow.table({"id": [1]})
    rdd = rf"and is of type pyspark.\w*RDD: make one, as with spark.createDataFrame.{name}"
    for value, says in (
        (
            frame,
            f"{name} must be a DataFrame of Spark, and is of type pandas.DataFrame: make one, as with spark.createData",
        ),
        (table, "and is of type pyarrow.Table: make one"),
        *([] if over_connect() else [(spark.sparkContext.parallelize([1]), rdd)]),
        (spark.range(5).groupBy("id"), "and is of type pyspark.GroupedData: make one"),
        ("train.parquet", f"{name} must be a DataFrame of Spark, and is of type str: read the file first"),
        ([{"id": 1}], "and is of type list: make one"),
        (5, "and is of type int: make one"),
        (frame.to_numpy(), "and is of type numpy.ndarray: make one, as with"),
        (spark.readStream.format("rate").load(), f"{name} is a stream: start the ranks yourself"),
    ):
        refuses(says, **{name: value})


@pytest.mark.parametrize("columns, says", [
    ([0, 1], r"columns\[0\] is 0 \(int\): give the names of columns, as \['features', 'label'\]"),
    (["id", None], r"columns\[1\] is None"),
    ("id", r"columns is 'id' \(str\): it must be a list of names of columns"),
    (5, r"columns is 5 \(int\): it must be a list"),
    ({"id": 1}, "columns is {'id': 1}"),
    ([], "columns is empty"),
    (["id", "id"], "columns names 'id' twice"),
    (["Id"], r"'Id' is not a column \(did you mean 'id'\?\) \(columns of df: id, features\)"),
    (["feature"], r"'feature' is not a column \(did you mean 'features'\?\)"),
])  # fmt: skip
def test_wrong_columns(refuses, columns, says):
    refuses(says, columns=columns)


@pytest.mark.parametrize("made, name, in_python, in_spark", [
    ("make_interval(1)", "interval", "c", "c"),
    ("null", "void", "c", "c"),
    ("array(named_struct('n', null))", "void", "c.n", "c.item.n"),
    ("map(1, make_interval(2))", "interval", "c.values", "c.value"),
    ("array(named_struct('n', 1, 'n', 2))", "struct<n:int,n:int>", "c", "c.item"),
])  # fmt: skip
def test_columns_that_ranks_cannot_have(refuses, spark, made, name, in_python, in_spark):
    """The call and df.write refuse them before anything is computed: that would fail."""
    df = spark.range(10).selectExpr("cast(raise_error('computed') as int) as x", f"{made} as c")
    refuses(f"'{in_python}' is {name}: .*cast it to", df=df)
    says = f"a column cannot be supplied as it is ('{in_spark}' is {name}, use "
    with shared_memory() as folder, pytest.raises(Exception, match=re.escape(says)):
        files = {name: f"{folder}/{name}.conf" for name in ("mapped-files", "named-pipes")}
        df.write.format("supply").mode("append").options(**files).save()


def test_columns_as_objects_and_of_one_name(refuses, spark):
    df = rows(spark, ROWS)
    refuses(
        r"columns\[0\] is Column<'id'>, and not a name: give the names of columns of df, .*withColumn",
        columns=[col("id")],
    )
    refuses(r"columns\[1\] is Column<'.*>, and not a name", columns=["id", df.id + 1])
    refuses(r"columns is Column<'id'> \(Column\): it must be a list of names", columns=col("id"))
    twice = df.join(df.withColumnRenamed("features", "others"), df.id == df.id)
    refuses(
        "df has the columns 'id' and 'id', which are one name for Spark: rename or drop one .columns of df: id,",
        df=twice,
    )
    refuses("df has the columns 'id' and 'ID'", df=df.selectExpr("id", "id as ID"), columns=["id"])
    refuses("validation has the columns 'id' and 'id'", df=df.select("id"), validation=twice)
    refuses("'features' is not a column .*columns of validation: id", validation=df.select("id"))


class Trainer:
    """An object of a user's program that keeps the session."""

    def __init__(self, spark):
        self.spark = spark
        self.rate = 0.1

    def train(self, data):
        return self.rate

    def __call__(self, data):
        return self.rate


def test_objects_that_hold_the_session(refuses, spark):
    trainer = Trainer(spark)
    df = rows(spark, ROWS)
    no_session = "cannot be pickled .*: ranks have no Spark session: give them rows as df or validation"
    refuses(
        rf"the function Trainer.train cannot go to the ranks: 'self.spark' \(SparkSession\) {no_session}", trainer.train
    )
    refuses(rf"'self.spark' \(SparkSession\) {no_session}", functools.partial(trainer.train))
    refuses(rf"'.*\.spark' \(SparkSession\) {no_session}", trainer)
    refuses(rf"'trainer.spark' \(SparkSession\) {no_session}", lambda data: trainer.rate)
    refuses(rf"'df' \(DataFrame\) {no_session}", lambda data: df.count())
    if not over_connect():
        model = {"context": spark.sparkContext}
        refuses(rf"'model\['context'\]' \(SparkContext\) {no_session}", train, kwargs={"model": model})
    refuses(r"'args\[0\]' \(lock\) cannot be pickled .*: make it inside the function", args=(threading.Lock(),))


def test_what_is_no_function(refuses, tmp_path):
    def generates(data):
        yield data

    async def waits(data):
        return data

    import torch

    for function, says in (
        (generates, "generates has a `yield`, so that calling it runs nothing"),
        (functools.partial(generates), "has a `yield`"),
        (waits, "waits is `async`, so that calling it runs nothing"),
        (generates([]), r"function is <generator .*: pass the function itself, without \(\)"),
        (None, r"function is None \(NoneType\), but must be a function, or the path of a script: pass the function"),
        (5, r"function is 5 \(int\), but must be a function, or the path of a script"),
        (Trainer, r"Trainer is a class, .*: pass a function, or a method of an object, as Trainer\(…\).train"),
        (torch.nn.Linear, "Linear is a class"),
        (torch.nn.Linear(1, 1), "function is a Linear, which is a torch.nn.Module: pass a function that trains it"),
        (tmp_path, f"cannot read the script {tmp_path}"),
    ):
        refuses(says, function)


@pytest.mark.parametrize("options, says", [
    ({"batch_size": 0}, "batch_size is 0: it must be a whole number, 1 or more"),
    ({"batch_size": "32"}, r"batch_size is '32' \(str\): it must be a whole number, 1 or more"),
    ({"batch_size": 32.0}, r"batch_size is 32.0 \(float\)"),
    ({"epochs": 0}, "epochs is 0: it must be a whole number, 1 or more"),
    ({"epochs": True}, r"epochs is True \(bool\)"),
    ({"seed": "x"}, r"seed is 'x' \(str\): it must be a whole number"),
    ({"seed": 2**63}, "seed is 9223372036854775808: it must be below"),
    ({"shuffle": "foo"}, "shuffle is 'foo': it must be 'none', 'partitions', 'rows' or 'all'"),
    ({"shuffle": "row"}, r"shuffle is 'row'.* \(did you mean 'rows'\?\)"),
    ({"shuffle": True}, "shuffle is True: it must be"),
    ({"repartition": 0}, "repartition is 0: it must be 'auto', False, or a number of partitions"),
    ({"order": "rank"}, r"order is 'rank': it must be .* \(did you mean 'ranks'\?\)"),
    ({"uneven": "cut"}, "uneven is 'cut': it must be 'keep', 'drop' or 'pad'"),
    ({"uneven": False}, "uneven is False: it must be"),
    ({"zero_copy": 1}, "zero_copy is 1: it must be True or False"),
    ({"transform": "scale"}, r"transform is 'scale' \(str\): it must be a function"),
    ({"transform": len, "collate_fn": len}, "set either transform or collate_fn"),
    ({"dtypes": {"label": "float32"}}, r"dtypes gives 'float32' \(str\) for 'label': it must be a torch.dtype"),
    ({"dtypes": ["id"]}, r"dtypes is \['id'\] \(list\): it must be a dict by column"),
    ({"ragged": {"feature": "list"}}, r"ragged names 'feature', .* \(did you mean 'features'\?\)"),
    ({"ragged": {"id": "rows"}}, r"ragged\['id'\] is 'rows': it must be 'list', 'jagged', 'pad', 'nested' or 'sparse'"),
    ({"ragged": "sparse"}, "ragged is 'sparse': it must be 'list', 'jagged', 'pad' or 'nested'"),
    ({"nulls": {"label": 0}}, r"nulls names 'label', which is not one of columns \(id, features\)"),
    ({"nulls": {"id": "none"}}, r"nulls gives 'none' \(str\) for 'id', which is bigint: give a number or 'mask'"),
    ({"nulls": {"id": 0.5}}, "nulls gives 0.5 .* for 'id', which is bigint: give a whole number, or dtypes="),
    ({"nulls": {"id": None}}, "nulls gives None .* for 'id': it must be a number"),
    ({"nulls": "mask"}, r"nulls is 'mask' \(str\): it must be a dict by column"),
    ({"cache": "yes"}, r"cache is 'yes' \(str\): it must be the absolute path of a folder on a disk .*, or Cache"),
    ({"cache": "memry"}, r"cache is 'memry' .* \(did you mean 'memory'\?\)"),
    ({"cache": True}, r"cache is True \(bool\)"),
    ({"cache": "memory", "shuffle": "rows"}, "cache repeats the first epoch's blocks, so shuffle='rows' cannot be"),
    ({"cache": Cache("/tmp"), "shuffle": Shuffle("rows")}, "cache repeats the first epoch's blocks"),
    ({"cache": "/tmp", "order": "global"}, "cache repeats the blocks of each rank, which order='global' changes"),
    ({"shuffle": Shuffle("all"), "order": "global"}, "order='global' gives all ranks one order"),
    ({"shuffle": "all", "backend": None}, "leave backend=None out, or use launcher=Mpirun"),
    ({"results": "id strange"}, "results is 'id strange': column 'id' has the type 'strange'"),
    ({"results": "id", "uneven": "pad"}, "uneven='pad' repeats rows, and results= would have them twice"),
    ({"resume": True}, "resume=True: this Supplier has no checkpoints"),
])  # fmt: skip
def test_wrong_options(refuses, options, says):
    refuses(says, **options)


@pytest.mark.parametrize("kind, given, says", [
    (Shuffle, {"how": "element"}, "how is 'element': it must be 'none', 'partitions', 'rows' or 'all'"),
    (Shuffle, {"how": "rows", "buffer": 0}, "buffer is 0: it must be a whole number, 1 or more"),
    (Shuffle, {"how": "none", "buffer": 10}, r"buffer is for Shuffle\('rows'\), and this is 'none': leave it out"),
    (Shuffle, {"how": "all", "fraction": 2}, "fraction is 2: it must be above 0 and at most 1"),
    (Shuffle, {"how": "all", "fraction": "half"}, "fraction is 'half': it must be above 0 and at most 1"),
    (Shuffle, {"how": "rows", "fraction": 0.5}, r"fraction is for Shuffle\('all'\)"),
    (Cache, {"folder": "cache"}, r"folder is 'cache' \(str\): it must be the absolute path of a folder on a disk"),
    (Cache, {"folder": "/tmp", "quota": "5 GB"}, "quota is '5 GB': it must be a number of bytes"),
    (Cache, {"folder": "/tmp", "keep": ""}, "keep is '': it must be a text that says which data the file has"),
    (Mpirun, {"host_file": 5}, r"host_file is 5 \(int\): it must be the path of a file"),
])  # fmt: skip
def test_wrong_parts_of_options(kind, given, says):
    """Each is a RunError, and a ValueError as Python has it."""
    with pytest.raises(RunError, match=says) as raised:
        kind(**given)
    assert isinstance(raised.value, ValueError)


def test_an_option_that_does_not_exist(spark):
    for kind, given, says in (
        (Rows, {"df": None, "epoch": 5}, r"Rows has no option 'epoch' \(did you mean 'epochs'\?\)"),
        (Rows, {"df": None, "backend": None}, r"Rows has no option 'backend': use Supplier\(ranks, backend=…\)"),
        (Supplier, {"ranks": 1, "max_restarts": 1}, r"'max_restarts' \(did you mean 'restarts'\?\)"),
        (Supplier, {"ranks": 1, "batch_size": 5}, r"Supplier has no option 'batch_size': use Rows\(df, batch_size=…\)"),
        (Supplier, {"ranks": 1, "learning_rate": 5}, "Supplier has no option 'learning_rate'$"),
        (Shuffle, {"how": "rows", "bufer": 5}, r"Shuffle has no option 'bufer' \(did you mean 'buffer'\?\)"),
    ):
        with pytest.raises(TypeError, match=says):
            kind(**given)


def test_the_writer_gets_forms_of_columns_from_ragged_and_dtypes(spark):
    import torch

    df = spark.sql("select array(1) as a, struct(array(1.5D) as x) as s, array(2) as `b,c`, 0.5F as f, 1 as i")

    def forms(**options):
        [train] = CallRows(Rows(df, **options), None, None).supplied(1, None, "auto", 5)
        return tuple(train.options[name] for name in ("lists", "vectors", "half"))

    assert forms() == ("auto", "dense", None)
    assert forms(ragged="pad") == ("varying", "dense", None)
    assert forms(ragged={"s.x": "list", "a": "nested"}) == ("a,s", "dense", None)
    # Commas separate names.
    assert forms(ragged={"a": "sparse", "b,c": "jagged"}) == ("varying", "a", None)
    assert forms(ragged={"b,c": "sparse"}) == ("auto", "sparse", None)
    half = dict.fromkeys(("f", "i", "s"), torch.float16)
    assert forms(dtypes={**half, "a": torch.float32}) == ("auto", "dense", "s,f")


def test_options_are_shown_short(spark):
    df = spark.range(3)
    assert repr(Rows(df, batch_size=8, shuffle=Shuffle("rows", buffer=9))) == (
        "Rows(df=DataFrame[id], batch_size=8, shuffle=Shuffle(how='rows', buffer=9))"
    )
    many = spark.range(1).selectExpr(*(f"id as column_{i}" for i in range(1000)))
    assert len(repr(Rows(many, collate_fn=list))) < 300
    assert repr(Supplier(2, launcher=Mpirun(), environment={"KEY": "secret"})) == (
        "Supplier(ranks=2, launcher=Mpirun(), environment=['KEY'])"
    )


def test_wrong_values_for_nulls(refuses, spark):
    df = spark.createDataFrame([(1, None, b"a", 0)], "x long, s string, b binary, x_mask int")
    refuses("adds a column 'x_mask', and columns has one of that name: rename yours", df=df, nulls={"x": "mask"})
    refuses("nulls gives 0 .* for 's', which is string: give a text or 'mask'", df=df, nulls={"s": 0})
    refuses("nulls gives 'a' .* for 'b', which is binary: give bytes", df=df, nulls={"b": "a"}, ragged={"b": "list"})


def test_nulls_of_text(spark):
    df = spark.createDataFrame([(1, "a"), (2, None), (None, "c")], "x long, s string").selectExpr("*", "s as t")

    def texts(data):
        return [(row["x"].item(), row["s"], row["s_mask"].item(), row["t"]) for rows in data for row in rows]

    got = Supplier(ranks=1, backend=None).run(
        texts, Rows(df.coalesce(1), collate_fn=list, nulls={"x": -1, "s": "mask", "t": "none"}, batch_size=2)
    )
    assert got == [(1, "a", True, "a"), (2, "", False, "none"), (-1, "c", True, "c")]


@pytest.mark.parametrize("options, says", [
    ({"ranks": "2"}, r"ranks is '2' \(str\): it must be a whole number, 1 or more"),
    ({"ranks": True}, r"ranks is True \(bool\)"),
    ({"ranks": 0}, "ranks is 0: it must be a whole number, 1 or more"),
    ({"ranks": 2.0}, r"ranks is 2.0 \(float\)"),
    ({"ranks": None}, "ranks is None"),
    ({"launcher": "mpirun"}, r"launcher is 'mpirun': it must be 'torch', 'here', 'elsewhere', Elsewhere.…., or Mpirun"),
    ({"launcher": Mpirun}, r"launcher is <class .*: it must be 'torch', 'here', 'elsewhere', Elsewhere.…., or Mpirun"),
    ({"backend": True}, r"backend is True .bool.: it must be 'auto', a backend of torch.distributed, or None"),
    ({"start_timeout": 0}, "start_timeout is 0: it must be a number of seconds above 0"),
    ({"start_timeout": "60"}, r"start_timeout is '60' \(str\): it must be a number of seconds"),
    ({"stall_timeout": float("inf")}, "stall_timeout is inf: it must be a number of seconds above 0"),
    ({"checkpoints": 5}, r"checkpoints is 5 .int.: it must be the path of a folder"),
    ({"folder": "/dev/shm/my folder"}, "folder is '/dev/shm/my folder': it must be an absolute path without blanks"),
    ({"folder": pathlib.Path("/dev/shm/tab\there")}, "folder is .*: it must be an absolute path without blanks"),
    ({"folder": "shm"}, "folder is 'shm': it must be an absolute path"),
    ({"folder": 5}, r"folder is 5 \(int\)"),
    ({"ring": "8MB"}, "ring is '8MB': it must be a number of bytes, or a text as '64KiB'"),
    ({"block": 2.5}, "block is 2.5"),
    ({"environment": {"OMP_NUM_THREADS": 2}}, r"environment has 'OMP_NUM_THREADS': 2 \(int\): names and values"),
])  # fmt: skip
def test_a_wrong_supplier(options, says):
    given: dict[str, Any] = {"ranks": 1, **options}
    with pytest.raises(RunError, match=says):
        Supplier(**given)


def test_wrong_ranks(spark):
    for options, says in (
        ({"ranks": "2"}, r"ranks is '2' \(str\)"),
        ({"folder": "/dev/shm/a b"}, "folder is '/dev/shm/a b'"),
        ({"ring": "much"}, "ring is 'much'"),
        ({"timeout": -1}, "timeout is -1"),
    ):
        given: dict[str, Any] = {"ranks": 1, **options}
        with pytest.raises(RunError, match=says):
            MatrixRanks(spark, **given)


def test_a_numpy_number_and_a_path_are_fine(spark):
    import numpy

    with shared_memory() as folder:
        supplier = Supplier(
            numpy.int64(1), folder=pathlib.Path(folder), ring="1MiB", block="256KiB", start_timeout=numpy.float64(60),
            backend=None,
        )  # fmt: skip
        given = Rows(rows(spark, ROWS), columns=(name for name in ["id"]), batch_size=numpy.int32(8))
        count = supplier.run(lambda data: sum(len(batch["id"]) for batch in data), given)
        assert count == ROWS
