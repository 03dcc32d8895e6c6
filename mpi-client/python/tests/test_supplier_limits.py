"""The limits of Supplier.run: neither the function nor Spark's work counts for start_timeout."""

import os
import time
from concurrent.futures import wait

import pytest
from spark_supplier import Mpirun, RunError, RunTimeoutError, Supplier
from spark_supplier.driver.sessions import in_thread, session_of
from spark_supplier.driver.spark_jobs import SparkJobs

from supplier_session import call, only_classic, rows, session_fixture, shared_memory

RANKS, ROWS, BATCH = 2, 400, 16
LAUNCHERS = ["torch", Mpirun()]

spark = session_fixture(2 * RANKS + 1)


@pytest.fixture
def run():
    """Supplier.run. After it, nothing is left."""
    with shared_memory() as folder:

        def run_in_folder(function, df, **options):
            return call(function, df, ranks=RANKS, folder=folder, columns=["id"], batch_size=BATCH, **options)

        yield run_in_folder


@pytest.fixture(scope="module")
def limit(spark):
    """A start_timeout in which this machine can start ranks, as busy as it is."""
    with shared_memory() as folder:
        begun = time.time()
        return max(5.0, 2 * Supplier(RANKS, folder=folder).run(lambda data: time.time() - begun, rows(spark, ROWS)))


def slowly(spark, seconds):
    """Rows after a shuffle whose tasks take this time in front of it."""
    from pyspark.sql.functions import udf

    @udf("long")
    def slow(number):
        if number == 0:
            time.sleep(seconds)
        return number

    frame = spark.range(0, ROWS, 1, RANKS).select(slow("id").alias("id"))
    # An exchange of the supplying job itself: adaptive execution would run it in front of that job.
    return spark.createDataFrame(frame.rdd.repartition(RANKS), frame.schema)


@pytest.mark.long
@only_classic("its rows come slowly from an RDD")
def test_a_wait_for_spark_is_no_stall(run, spark):
    def train(data):
        from torch import distributed

        count = sum(len(batch["id"]) for batch in data)
        distributed.barrier()
        return count

    # Only rank 0 waits for these rows, and rank 1 waits for rank 0.
    assert run(train, slowly(spark, 7), stall_timeout=4) > 0


@pytest.mark.long
@only_classic("its rows come slowly from an RDD")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_slow_functions_and_a_slow_spark_meet_no_limit(run, spark, limit, launcher):
    seconds = limit + 3

    def train(data):
        if os.environ["RANK"] == "1":
            time.sleep(seconds)
        count = sum(len(batch["id"]) for epoch in data.epochs() for batch in epoch)
        if os.environ["RANK"] == "0" and launcher != "torch":
            time.sleep(seconds)
        return count

    # While rank 1 sleeps, rank 0 waits for a slow Spark, or has had all its rows.
    df = slowly(spark, seconds) if launcher == "torch" else rows(spark, ROWS)
    assert run(train, df, launcher=launcher, start_timeout=limit, uneven="keep") > 0


@pytest.mark.long
@only_classic("it uses the SparkContext")
def test_slots_that_other_jobs_hold(run, spark, limit):
    """Only one of both ranks gets its task."""
    holders = 2 * RANKS + 1 - 2

    def hold():
        spark.sparkContext.setJobGroup("holders", "hold slots")
        spark.sparkContext.range(0, holders, 1, holders).foreach(lambda _: time.sleep(1000))

    holding = in_thread(session_of(spark), "hold slots", hold)
    try:
        says = r"rank \d has had no Spark task for .* \(start_timeout\)$"
        with pytest.raises(RunTimeoutError, match=says):
            run(list, rows(spark, ROWS), start_timeout=limit)
    finally:
        spark.sparkContext.cancelJobGroup("holders")
        wait([holding])


def test_ranks_that_do_not_start_are_named(run, spark):
    # No Python starts in that time.
    with pytest.raises(RunTimeoutError, match=r"^ranks 0, 1 have not started within 0.1 s \(start_timeout\): if nodes"):
        run(list, rows(spark, ROWS), start_timeout=0.1)


@pytest.mark.parametrize("options", [{"start_timeout": 0}, {"start_timeout": None}, {"stall_timeout": -1}])
def test_limits_that_are_none_are_refused(run, spark, options):
    with pytest.raises(RunError, match=rf"^{next(iter(options))} is .*must be a number of seconds above 0"):
        run(list, rows(spark, ROWS), **options)


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.long), 9])
def test_ranks_whose_executors_have_gone_are_placed_again(run, spark, caplog, monkeypatch, times):
    """The tasks that start ranks land on a host that is not theirs, once or always."""
    start, started = SparkJobs.start_nodes, []

    def start_elsewhere(jobs, specs):
        started.append(specs)
        start(jobs, {f"{host}-gone": spec for host, spec in specs.items()} if len(started) <= times else specs)

    monkeypatch.setattr(SparkJobs, "start_nodes", start_elsewhere)
    if times == 1:
        assert run(lambda data: "trained", rows(spark, ROWS), backend=None) == "trained"
    else:
        with pytest.raises(RunError, match="the task that starts the ranks of .*-gone landed on"):
            run(lambda data: "trained", rows(spark, ROWS), backend=None)
    assert caplog.text.count("The ranks are placed again") == len(started) - 1 == min(times, 2)
