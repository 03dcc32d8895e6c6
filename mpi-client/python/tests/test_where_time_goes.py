"""Where the time of a call goes: the statistics of ranks and tasks, the sentence, and what rank 0 reports."""

import logging
import re
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from spark_supplier import Rows, Supplier
from spark_supplier.driver.statistics import KINDS, Measurements, sentence
from spark_supplier.errors import RankError, RunError
from spark_supplier.node.messages import Measured, Reported
from spark_supplier.times import EpochStatistics, EpochTimes

from supplier_session import rows, session_fixture, shared_memory

RANKS, ROWS, BATCH, EPOCHS = 2, 400, 25, 2
spark = session_fixture(2 * RANKS + 1)


@pytest.fixture
def supplier() -> Iterator[Any]:
    with shared_memory() as folder:
        yield Supplier(ranks=RANKS, folder=folder)


def slow_rows(spark, seconds_per_row):
    """Rows that take Spark that long."""
    sleep = f"java_method('java.lang.Thread', 'sleep', {seconds_per_row * 1000:.0f}L)"
    return rows(spark, ROWS).selectExpr("id", f"{sleep} as slept")


def seconds(spark=0.0, ranks=0.0, batching=0.0, program=0.0, copying=0.0):
    return dict(zip(KINDS, (spark, ranks, batching, program, copying)))


@pytest.mark.parametrize(
    ("found", "tasks", "said"),
    [
        (
            seconds(spark=71, program=24, batching=5),
            [{"seconds": 10, "scan": 5.5, "copy": 1}, {"seconds": 10, "scan": 5.5, "copy": 1}],
            "Spark-bound: ranks waited 71 % of the time for rows; Spark spent 55 % in its scan, 10 % in the copy",
        ),
        (seconds(spark=71, program=29), [], "Spark-bound: ranks waited 71 % of the time for rows"),
        (
            seconds(spark=10, program=80, batching=7, copying=3),
            [],
            "Rank-bound: the ranks' own code took 80 % of the time, making batches 7 %, copies to the device 3 %; "
            "ranks waited 10 % of it for rows",
        ),
        (
            seconds(spark=10, ranks=80, program=10),
            [],
            "Bound by the slowest rank: ranks waited 80 % of the time for each other; ranks waited 10 % of it for rows",
        ),
        (seconds(), [{"seconds": 1, "scan": 1, "copy": 0}], None),
    ],
)
def test_the_sentence_names_the_slower_side(found, tasks, said):
    assert sentence(found, tasks) == said


def test_rows_replace_earlier_ones_of_their_epoch():
    measurements = Measurements()
    for program in (1.0, 3.0):
        measurements.take(Measured(1, [EpochStatistics(0, 10, 1.0, 0.0, 0.0, program, 0.0)], []))
    measurements.take(Measured(0, [], [Reported(0, 2, 1.5, {"loss": 0.123456})]))
    assert measurements.newest() == (
        "loss 0.1235, Rank-bound: the ranks' own code took 75 % of the time; ranks waited 25 % of it for rows"
    )
    statistics = measurements.statistics([])
    assert statistics.ranks == [{"rank": 1, "epoch": 0, "rows": 10, **seconds(spark=1.0, program=3.0)}]
    assert statistics.history == [{"loss": 0.123456, "epoch": 0, "batch": 2, "seconds": 1.5}]


def test_each_second_of_a_loop_has_one_kind():
    times = EpochTimes()
    begun = time.perf_counter()
    for epoch in range(2):
        times.ask()
        asked = time.perf_counter()
        time.sleep(0.01)
        times.seconds.spark += time.perf_counter() - asked
        times.seconds.answer(asked)
        times.begin(epoch)
        for _ in times.seconds.timed(iter(range(3))):
            time.sleep(0.01)
    times.ask()
    whole = time.perf_counter() - begun
    first, second = times.rows()
    assert (first.epoch, second.epoch) == (0, 1) and times.rows(1) == [second]
    for row in (first, second):
        assert row.waiting_for_spark >= 0.01 and row.program >= 0.03
    assert sum(getattr(row, kind) for row in (first, second) for kind in KINDS) == pytest.approx(whole, rel=0.2)


def test_what_is_timed_is_not_kept():
    """A loop that knows its length asks for nothing after the last batch, and that may hold a slot of the ring."""

    class Item:
        pass

    timed = EpochTimes().seconds.timed(Item() for _ in range(1))
    # pytest keeps what an assert computes.
    kept = weakref.ref(next(timed))
    assert kept() is None
    assert list(timed) == []


def counts(data):
    from torch import distributed

    elements = [sum(len(batch["id"]) for batch in epoch) for epoch in data.epochs()]
    rows = data.statistics()
    assert [row.epoch for row in rows] == list(range(len(elements)))
    assert [row.rows for row in rows] == elements
    distributed.barrier()
    return sum(elements)


def test_a_slow_source_is_named(supplier, spark, caplog, monkeypatch):
    monkeypatch.setattr("spark_supplier.driver.run._LONG_SECONDS", 0.1)
    slow = Rows(slow_rows(spark, 0.005), columns=["id", "slept"], batch_size=BATCH, uneven="keep", epochs=2)
    again = "in later epochs: Spark computes df again in each"
    with caplog.at_level(logging.INFO, "spark_supplier"):
        supplier.run(counts, slow)
    assert caplog.text.count(again) == 1
    said = supplier.statistics.sentence
    assert said in caplog.messages
    assert re.fullmatch(
        r"Spark-bound: ranks waited \d+ % of the time for rows; Spark spent \d+ % in its scan, \d+ % in the copy", said
    )
    waited, scan, copy = map(int, re.findall(r"\d+", said))
    assert waited > 50 and scan > copy
    assert [(row["data"], row["rank"], row["rows"]) for row in supplier.statistics.tasks] == [
        ("df", rank, 2 * ROWS // RANKS) for rank in range(RANKS)
    ]
    for row in supplier.statistics.tasks:
        assert row["scan"] + row["copy"] + row["waiting_for_rank"] == pytest.approx(row["seconds"])


def test_a_slow_program_is_named(supplier, spark, caplog):
    def train(data):
        for epoch in data.epochs():
            for batch in epoch:
                time.sleep(0.1)
                data.report(loss=1 / (1 + epoch.number), rows=len(batch["id"]))

    with caplog.at_level(logging.INFO, "spark_supplier"):
        ran = supplier.run(
            train, Rows(rows(spark, ROWS), batch_size=BATCH, epochs=EPOCHS, uneven="keep"), results="x long"
        )
    ran.release()
    statistics = supplier.statistics
    assert statistics is ran.statistics
    assert statistics.sentence in caplog.messages
    assert re.match(r"Rank-bound: the ranks' own code took \d+ % of the time", statistics.sentence)
    assert [(row["rank"], row["epoch"], row["rows"]) for row in statistics.ranks] == [
        (rank, epoch, ROWS // RANKS) for rank in range(RANKS) for epoch in range(EPOCHS)
    ]
    assert all(row["program"] > 0.5 for row in statistics.ranks)
    steps = ROWS // RANKS // BATCH
    assert [(told["epoch"], told["batch"], told["loss"], told["rows"]) for told in statistics.history] == [
        (epoch, step, 1 / (1 + epoch), BATCH) for epoch in range(EPOCHS) for step in range(1, steps + 1)
    ]
    assert [told["seconds"] for told in statistics.history] == sorted(told["seconds"] for told in statistics.history)


def test_waits_for_validation_rows_are_no_time_of_the_program(supplier, spark):
    def validate(data):
        for _ in data:
            pass
        return sum(len(batch["id"]) for batch in data.validation)

    slow = slow_rows(spark, 0.01)
    fast = rows(spark, ROWS).selectExpr("id", "cast(null as string) as slept")
    supplier.run(validate, Rows(fast, validation=slow, columns=["id", "slept"], batch_size=BATCH, uneven="keep"))
    first = [row for row in supplier.statistics.ranks if row["rank"] == 0]
    assert len(first) == 1 and first[0]["waiting_for_spark"] > first[0]["program"]


def test_reports_reach_the_caller_while_ranks_train(spark):
    """What its function raises ends them."""
    found = []

    class Enough(Exception):
        pass

    def enough(report):
        found.append(report)
        if report["batch"] > 2:
            raise Enough

    def train(data):
        for number, _ in enumerate(data):
            data.report(number=number)
            time.sleep(0.2)

    reporting = Supplier(RANKS, on_report=enough)
    with pytest.raises(Enough):
        reporting.run(train, Rows(spark.range(0, 1000, 1, RANKS), batch_size=1))
    assert 2 < len(found) < 100 and [report["number"] for report in found] == [*range(len(found))]
    assert reporting.statistics is not None and reporting.statistics.history[: len(found)] == found
    with pytest.raises(RunError, match="on_report is 7 .*: it must be a function"):
        Supplier(RANKS, on_report=7)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="missing"):
        reporting.run(train, spark.range(1), missing=1)  # type: ignore[arg-type]
    assert reporting.statistics.history == [], "a refused call has none of an earlier one"


def test_a_call_that_fails_has_statistics_and_a_report_takes_numbers_only(supplier, spark):
    def train(data):
        for _ in data:
            data.report(loss=1)
            data.report(loss="high")

    with pytest.raises(RankError, match="loss=...\\) is 'high', which is no number"):
        supplier.run(train, Rows(rows(spark, ROWS), batch_size=BATCH))
    assert [told["loss"] for told in supplier.statistics.history] == [1.0]
