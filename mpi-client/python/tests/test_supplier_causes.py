"""The first cause of a failed run reaches the user whole, and the ranks, too."""

import concurrent.futures
import os
import signal
import threading
import time

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import inheritable_thread_target
from pyspark.sql import functions
from spark_supplier import RankError, RunError, RunTimeoutError, Supplier
from spark_supplier.driver import failures
from spark_supplier.driver.rank_pool import RankPool
from spark_supplier.driver.results import release
from spark_supplier.driver.sessions import session_of
from spark_supplier.driver.turns import Turn
from spark_supplier.node import exceptions
from spark_supplier.node.messages import Failure
from spark_supplier.offload import MatrixRanks

from supplier_session import call, only_classic, over_connect, session_fixture, shared_memory

spark = session_fixture(3)


class Odd(Exception):
    lock: object = None

    def __init__(self, row, *, column):
        super().__init__(f"row {row} of {column}")
        self.row = row


@pytest.fixture
def run():
    """Supplier.run with one rank, which says on stderr what it is told. After it, nothing is left."""
    with shared_memory() as folder:

        def run_in_folder(function, df, **options):
            return call(function, df, folder=folder, **{"backend": None, **options})

        yield run_in_folder


@pytest.fixture
def cause(run, capfd):
    """A function: the text after `Spark could not supply the train data: `, which the rank has got, too."""

    def rank(data):
        import spark_supplier

        try:
            list(data)
        except spark_supplier.SparkError as error:
            print("told:", error)
            raise

    def of(df):
        capfd.readouterr()
        with pytest.raises(RunError, match="Spark could not supply the train data: ") as failure:
            run(rank, df)
        text = str(failure.value).removeprefix("Spark could not supply the train data: ")
        assert failure.value.__cause__ is not None
        (told,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("[rank 0] told: "))
        assert told.endswith(text[:900])
        return text

    return of


@pytest.mark.parametrize("tries", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_rank_that_fails_at_once_is_the_cause(run, spark, tries):
    """Its node has ended when Spark's job begins."""

    def fails(data):
        raise ValueError("my own")

    for _ in range(tries):
        with pytest.raises(RankError, match="ValueError: my own"):
            run(fails, spark.range(10))


def test_a_rank_that_leaves_a_collective_is_the_cause(run, spark):
    """The other one notices that seconds before it fails."""

    def train(data):
        from torch import distributed

        if distributed.get_rank() == 0:
            distributed.barrier()
        distributed.destroy_process_group()
        time.sleep(4)
        raise ValueError("the true cause")

    with pytest.raises(RankError, match=r"(?s)^rank 1 .*ValueError: the true cause") as failure:
        run(train, spark.range(10), ranks=2, backend="gloo")
    assert isinstance(failure.value.__cause__, ValueError)


def test_spark_is_the_cause_also_for_a_rank_in_a_collective(run, spark):
    """Spark tells the rank that reads. Its end tells the other one."""

    def train(data):
        from torch import distributed

        if distributed.get_rank() == 0:
            distributed.barrier()
        list(data)

    large = spark.range(100000).selectExpr("repeat('x', 5000) AS text")
    with pytest.raises(RunError, match="does not fit into a block of 4096 bytes"):
        run(train, large, ranks=2, backend="gloo", ring=16384, block=4096, uneven="keep")


def test_a_collective_that_fails_on_every_rank_is_the_cause(run, spark, monkeypatch):
    """Nobody waits for another one."""
    monkeypatch.setattr("spark_supplier.driver.run._EXPLAIN_SECONDS", 1000)

    def fails(data):
        raise RuntimeError("[gloo/pair.cc:1] Connection closed by peer")

    with pytest.raises(RankError, match=r"(?s)^rank . .*Connection closed by peer"):
        run(fails, spark.range(10), ranks=2)


@only_classic("it uses the SparkContext")
@pytest.mark.parametrize("is_gone", [False, True])
def test_files_that_go_with_a_rank_are_not_the_cause(spark, is_gone):
    jvm = spark._jvm
    reason = jvm.java.nio.file.NoSuchFileException("x") if is_gone else jvm.java.io.IOException("x")
    error = Py4JJavaError("of PySpark", jvm.supply.core.ConfigException("cannot read x", reason))
    of_job = failures.of_job(session_of(spark), "", "", "Spark could not supply", error)
    of_rank = failures.of_rank(Failure(0, "node-1", "of gloo", False, True, exceptions.pickled(RuntimeError())))
    first = of_rank if is_gone else of_job
    assert failures.first([of_job, of_rank]) is failures.first([of_rank, of_job]) is first
    assert str(of_job.error) == "Spark could not supply: cannot read x"


def raising(kind):
    """A Python function that fails for 7. Nested, because workers cannot import this module."""

    def fails(number):
        if number == 7:
            if kind == "assert":
                # A bare assert. (pytest gives one here a text.)
                raise AssertionError
            if kind == "odd":
                raise type("Odd", (Exception,), {})("two\nlines")
            if kind == "chained":
                try:
                    os.environ["NO KEY"]
                except KeyError as error:
                    raise ValueError("no good") from error
            os._exit(3)
        return number

    return fails


RAISED, WHERE = "Spark's Python worker raised ", '(File "{file}", line '
# PySpark leaves the cause of a UDF's exception out.
NO_RDDS = only_classic("Spark Connect has no RDDs")


@pytest.mark.parametrize("source, kind, begin, end", [
    pytest.param("udf", "assert", f"{RAISED}AssertionError {WHERE}", ": raise AssertionError)", marks=pytest.mark.long),
    ("udf", "odd", f"{RAISED}Odd: two lines {WHERE}", ", in fails)"),
    ("udf", "dies", "Python worker exited unexpectedly (crashed)", ": java.io.EOFException"),
    pytest.param("rdd", "assert", f"{RAISED}AssertionError {WHERE}", ": raise AssertionError)",
                 marks=[pytest.mark.long, NO_RDDS]),
    pytest.param("rdd", "chained", f"{RAISED}ValueError: no good {WHERE}", ", in fails)", marks=NO_RDDS),
])  # fmt: skip
def test_a_python_function_of_the_data(cause, spark, source, kind, begin, end):
    if source == "udf":
        df = spark.range(10).select(functions.udf(raising(kind), "long")("id").alias("x"))
    else:
        df = spark.sparkContext.range(10).map(raising(kind)).map(lambda number: (number,)).toDF("x long")
    text = cause(df)
    assert "\n" not in text and text.endswith(end), text
    shown = text.replace("test_supplier_causes.Odd", "Odd").replace("__main__.Odd", "Odd")
    assert shown.startswith(begin.format(file=__file__)), text
    assert kind != "chained" or ", caused by KeyError: 'NO KEY' (File " in text


def test_a_source_that_spark_cannot_read(cause, spark, tmp_path):
    csv, parquet = tmp_path / "bad.csv", tmp_path / "rows"
    csv.write_text("1\n2\nabc\n")
    text = cause(spark.read.schema("x int").option("mode", "FAILFAST").csv(f"file:{csv}"))
    assert text.startswith("[FAILED_READ_FILE") and "bad.csv" in text and "[MALFORMED_RECORD" in text
    assert text.endswith('java.lang.NumberFormatException: For input string: "abc"')
    spark.range(10).selectExpr("id as x").coalesce(1).write.parquet(f"file:{parquet}")
    df = spark.read.parquet(f"file:{parquet}")
    if over_connect():
        # Spark reads the schema again for each action.
        return
    (part,) = parquet.glob("part-*")
    part.unlink()
    text = cause(df)
    assert text.startswith("[FAILED_READ_FILE") and part.name in text


def test_a_class_of_the_program_comes_back(run, spark):
    """With an argument that pickle cannot give its constructor, a lock inside, and a cause of its own."""

    def fails(data):
        import threading

        error = Odd(7, column="x")
        error.lock = threading.Lock()
        try:
            os.environ["NO KEY"]
        except KeyError as first:
            raise error from first

    with pytest.raises(RankError, match=r"Odd: row 7 of x") as failure:
        run(fails, spark.range(10))
    cause = failure.value.__cause__
    assert type(cause) is Odd and cause.row == 7 and type(cause.__cause__) is KeyError


def test_runs_of_one_session_take_turns(run, spark, caplog):
    """As CrossValidator(parallelism=2): together they need more slots than Spark has."""
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        fits = [threads.submit(run, lambda data, i=i: i, spark.range(64), ranks=2) for i in range(2)]
        assert [fit.result() for fit in fits] == [0, 1]
    assert len([record for record in caplog.records if "other runs of this session" in record.getMessage()]) == 1


@only_classic("it uses the SparkContext")
def test_ctrl_c_ends_the_runs_that_have_the_slots_or_wait_for_them(run, spark, caplog):
    def trains(data):
        import time

        time.sleep(1000)

    def interrupt():
        # Spark cancels jobs that it has: those that start the ranks and supply them.
        jobs = spark.sparkContext.statusTracker().getActiveJobsIds
        while (
            sum("other runs of this session" in record.getMessage() for record in caplog.records) < 2 or len(jobs()) < 2
        ):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        fits = [threads.submit(run, trains, spark.range(64), ranks=2) for _ in range(2)]
        threads.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(trains, spark.range(64), ranks=2)
        texts = sorted(str(fit.exception(120)) for fit in fits)
    assert "the run was cancelled, with another run" in texts[1] + texts[0]
    assert "cancelled" in texts[0] and "cancelled" in texts[1]


@pytest.mark.long
@only_classic("it uses the SparkContext")
def test_slots_of_an_interrupted_run_are_not_taken(run, spark, monkeypatch):
    """The waiting run asks next when the ranks of the other one have gone, and with them its turn."""
    ask, close = Turn._ask, RankPool.close
    waits, asked, closed = threading.Event(), threading.Semaphore(0), threading.Event()

    def say_asked(turn, verb, **options):
        answer = ask(turn, verb, **options)
        if answer.get("state") == "waits":
            waits.set()
        if closed.is_set():
            asked.release()
        return answer

    def close_and_wait(pool):
        close(pool)
        closed.set()
        # The first answer may be of a question before that.
        for _ in range(2):
            asked.acquire(timeout=5)

    def trains(data):
        import time

        time.sleep(1000)

    def has_jobs():
        return len(spark.sparkContext.statusTracker().getActiveJobsIds()) >= 2

    def run_later():
        while not has_jobs():
            time.sleep(0.1)
        return run(trains, spark.range(64), ranks=2)

    def interrupt():
        waits.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Turn, "_ask", say_asked)
    monkeypatch.setattr(RankPool, "close", close_and_wait)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        later = threads.submit(run_later)
        threads.submit(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                run(trains, spark.range(64), ranks=2)
            assert "the run was cancelled, with another run" in str(later.exception(60))
        finally:
            spark.sparkContext.cancelAllJobs()


@pytest.mark.long
@only_classic("it uses the SparkContext")
def test_slots_of_a_cancelled_run_are_not_taken(run, spark, monkeypatch):
    """The waiting run asks next when the other one has given them back."""
    ask, release_turn = Turn._ask, Turn.release
    asked, released = set(), threading.Event()

    def ask_later(turn, verb, **options):
        if turn.run in asked:
            released.wait(60)
        asked.add(turn.run)
        return ask(turn, verb, **options)

    def say_released(turn):
        release_turn(turn)
        released.set()

    def trains(data):
        import time

        time.sleep(1000)

    monkeypatch.setattr(Turn, "_ask", ask_later)
    monkeypatch.setattr(Turn, "release", say_released)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        fits = [threads.submit(run, trains, spark.range(64), ranks=2, restarts=1) for _ in range(2)]
        while len(asked) < 2 or len(spark.sparkContext.statusTracker().getActiveJobsIds()) < 2:
            time.sleep(0.1)
        spark.sparkContext.cancelAllJobs()
        try:
            texts = sorted(str(fit.exception(60)) for fit in fits)
        finally:
            spark.sparkContext.cancelAllJobs()
    assert sum("the run was cancelled, with another run" in text for text in texts) == 1


@only_classic("it uses the SparkContext")
def test_another_job_that_holds_the_slots_is_named(run, spark, caplog, tmp_path):
    gate = str(tmp_path / "gate")

    def busy(number):
        import pathlib
        import time

        while not pathlib.Path(gate).exists():
            time.sleep(0.1)
        return number

    context = spark.sparkContext
    context.setJobDescription("my long job")
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        job = inheritable_thread_target(spark)(lambda: context.parallelize(range(3), 3).map(busy).count())
        other = threads.submit(job)
        while not context.statusTracker().getActiveStageIds():
            time.sleep(0.1)
        time.sleep(1)
        with pytest.raises(RunTimeoutError, match=r"tasks of other jobs hold Spark's slots: my long job \(stage "):
            run(list, spark.range(64), ranks=2, start_timeout=1)
        threading.Timer(2, (tmp_path / "gate").touch).start()
        assert run(lambda data: "done", spark.range(64), ranks=2) == "done"
        other.result()
    context.setJobDescription(None)
    said = [record.getMessage() for record in caplog.records if "task slots" in record.getMessage()]
    assert "needs 3 free task slots, and waits for jobs that hold Spark's: my long job (stage " in said[0]


def test_a_stopped_session_is_named(spark):
    df = spark.range(10)
    spark.stop()
    for use in (lambda: Supplier(ranks=1).run(list, df), lambda: release(df), lambda: MatrixRanks(spark, ranks=1)):
        with pytest.raises(RunError, match="the session.* was stopped: make a session"):
            use()
