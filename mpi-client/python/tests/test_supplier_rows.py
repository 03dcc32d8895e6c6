"""Supplier.run: which rank gets how many rows, and how many steps."""

import gzip
import logging
import os
import re

import pandas
import pytest
from pyspark.sql import functions as F
from spark_supplier import RankError, RunError, Supplier

from supplier_session import call_of, session_fixture, shared_memory

RANKS, ROWS, BATCH = 2, 1000, 16

spark = session_fixture(2 * RANKS + 1)


@pytest.fixture
def run(warm, caplog):
    """Supplier.run, with its warnings."""

    def run_and_listen(function, df, **options):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="spark_supplier"):
            value = warm(function, df, **{"ranks": RANKS, "batch_size": BATCH, **options})
        return value, [record.getMessage() for record in caplog.records if record.name == "spark_supplier"]

    return run_and_listen


def ids_of_ranks():
    """A function for ranks, which cannot import this module: for each rank, the ids of its batches, by epoch."""

    def ids(data):
        from torch import distributed

        epochs = [[batch["id"].tolist() for batch in epoch] for epoch in data.epochs()]
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, epochs)
        return gathered

    return ids


def flat(epoch):
    return [i for batch in epoch for i in batch]


def one_row_group(spark, folder):
    """A file as pandas writes it, in two splits: the rows are in one of them."""
    path = folder / "one.parquet"
    pandas.DataFrame({"id": range(ROWS), "text": ["x" * 100] * ROWS}).to_parquet(path, compression=None)
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(path.stat().st_size // 2 + 1))
    return spark.read.parquet(str(path)).select("id")


def gzipped(spark, folder):
    path = folder / "one.csv.gz"
    path.write_bytes(gzip.compress("".join(f"{i}\n" for i in range(ROWS)).encode()))
    return spark.read.csv(str(path), schema="id long")


def aggregated(spark, folder):
    return spark.range(0, ROWS * 3, 1, 4).groupBy((F.col("id") % ROWS).alias("id")).count().select("id")


def skewed_cache(spark, folder):
    df = spark.range(0, ROWS, 1, 2).where(f"id < 3 or id >= {ROWS // 2}").cache()
    df.count()
    return df


@pytest.mark.parametrize("make, why", [
    (one_row_group, "df has 2 partitions for 2 ranks, of which rank . gets 1000 of 1000 rows, and rank . gets 0"),
    # One partition, as `aggregated`.
    pytest.param(gzipped, "df has 1 partition for 2 ranks, so rank 1 gets no rows", marks=pytest.mark.long),
    (aggregated, "df has 1 partition for 2 ranks, so rank 1 gets no rows"),
    (skewed_cache, r"df has 2 partitions for 2 ranks, of which rank 1 gets \d+ of \d+ bytes, and rank 0 gets \d+"),
])  # fmt: skip
def test_a_frame_without_rows_for_a_rank_is_repartitioned(run, spark, tmp_path, make, why):
    df = make(spark, tmp_path)
    expected = sorted(row.id for row in df.collect())
    try:
        (first, second), warnings = run(ids_of_ranks(), df, epochs=2, uneven="keep")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    [warning] = warnings
    assert re.match(why, warning) and "over 8 partitions" in warning
    for epoch in range(2):
        mine, theirs = flat(first[epoch]), flat(second[epoch])
        assert sorted(mine + theirs) == expected
        assert abs(len(mine) - len(theirs)) <= 8
    # Mixed, and the same in each epoch, as far as the order of partitions allows.
    assert flat(first[0]) != sorted(flat(first[0]))
    assert sorted(flat(first[0])) == sorted(flat(first[1]))


def test_seven_partitions_for_two_ranks(run, spark):
    def train(data):
        import torch
        from torch import distributed

        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        steps = []
        for epoch in data.epochs():
            done = torch.tensor(0)
            for batch in epoch:
                model(batch["id"].float()[:, None]).sum().backward()
                done += 1
            # The function's own collective comes after the same number of steps.
            distributed.all_reduce(done)
            steps.append(done.item())
        return steps

    df = spark.range(0, 7 * 20, 1, 7)
    # Four partitions are 80 rows, or five steps.
    said = "to make equal steps, the ranks have repeated 40 rows (uneven; 'keep' gives each row once)"
    assert run(train, df, epochs=2) == ([10, 10], [said])


@pytest.mark.long
def test_no_row_is_repeated_without_need_and_without_a_word(spark, caplog):
    """With one rank, with equal numbers, in results, and of a last batch in a global order."""

    def steps(data):
        ids = [batch["id"].tolist() for batch in data]
        if os.environ["WORLD_SIZE"] == "1":
            return [ids]
        from torch import distributed

        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, ids)
        return gathered

    def predict(data):
        with data.results() as out:
            for epoch in data.epochs():
                for batch in epoch:
                    out.write(batch)

    def twice(data):
        for epoch in data.epochs():
            with data.results() as out:
                for batch in epoch:
                    out.write(batch)

    with shared_memory() as folder, caplog.at_level(logging.WARNING, logger="spark_supplier"):

        def run(supplier, rows, function=steps, **options):
            caplog.clear()
            value = call_of(supplier, function, spark.range(0, rows, 1, 2), **{"batch_size": BATCH, **options})
            return value, [text for text in caplog.messages if "equal steps" in text]

        with Supplier(1, folder=folder) as one:
            for rows in (20, 32, 5):
                [mine], said = run(one, rows)
                assert sorted(flat(mine)) == list(range(rows)) and said == []
            [mine], said = run(one, 70, order="global", batch_size=64)
            assert sorted(mine[-1]) == sorted(flat(mine))[-len(mine[-1]) :] or len(mine[-1]) == 6
            last = mine[-1]
        with Supplier(RANKS, folder=folder) as two:
            for rows in (40, 64, 10):
                both, said = run(two, rows)
                assert sorted(flat(sum(both, []))) == list(range(rows)) and said == []
            both, said = run(two, 70, order="global", batch_size=64)
            assert sum((mine[-1] for mine in both), []) == last and said == []
            both, [said] = run(two, 69, order="global", batch_size=64)
            assert [len(mine[-1]) for mine in both] == [3, 3] and len(set(both[0][-1] + both[1][-1])) == 5
            assert "repeated 1 rows" in said
            _, [said] = run(two, 70, uneven="drop")
            assert "left out 6 rows" in said
            for supplier in (two, Supplier(RANKS, folder=folder, backend=None)):
                returned, said = run(supplier, 70, predict, results="id", epochs=2)
                assert sorted(row.id for row in returned.rows.collect()) == sorted([*range(70)] * 2) and said == []
                returned.release()
            with pytest.raises(RunError, match="uneven='pad' repeats rows, and results= would have them twice"):
                run(two, 70, predict, results="id", uneven="pad")
            with pytest.raises(RunError, match=r"let one `with data.results\(\)` block surround all epochs"):
                run(two, 70, twice, results="id", epochs=2)


@pytest.mark.long
def test_a_rank_that_has_had_its_rows_is_named(run, spark, monkeypatch):
    # All that failed is known soon, and nobody waits for another cause.
    monkeypatch.setattr("spark_supplier.driver.run._EXPLAIN_SECONDS", 1000)

    def train(data, own_collective):
        import torch
        from torch import distributed

        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        for batch in data:
            model(batch["id"].float()[:, None]).sum().backward()
        if own_collective:
            distributed.barrier()
            distributed.all_reduce(torch.zeros(7))

    text = r"rank 1 has had all its rows of epoch 0 \(4 batches\) and has (left|returned).*rank 0 is in batch 5.*'pad'"
    for options in ({"kwargs": {"own_collective": False}}, {"kwargs": {"own_collective": True}, "stall_timeout": 5}):
        with pytest.raises(RunError, match=f"(?s){text}"):
            run(train, spark.range(0, 7 * 20, 1, 7), uneven="keep", **options)


def test_a_rank_without_rows_repeats_those_of_another(run, spark):
    df = spark.range(0, 40, 1, 2).where("id >= 20")
    (first, second), warnings = run(ids_of_ranks(), df, epochs=2)
    for epoch in range(2):
        assert sorted(flat(second[epoch])[:20]) == list(range(20, 40))
        assert [len(batch) for batch in first[epoch]] == [len(batch) for batch in second[epoch]] == [BATCH, 4]
        assert set(flat(first[epoch])) <= set(range(20, 40))
    assert ["repeated 40 rows" in warning for warning in warnings] == [True]


def test_a_frame_is_not_repartitioned_against_the_wish(run, spark):
    one = spark.range(0, ROWS, 1, 1)
    (first, second), [warning] = run(ids_of_ranks(), one, repartition=False, uneven="keep")
    assert flat(first[0]) == list(range(ROWS)) and second == [[]]
    assert warning.startswith("df has 1 partition for 2 ranks, so rank 1 gets no rows. Set repartition='auto'")
    (first, second), warnings = run(ids_of_ranks(), one, repartition=3, uneven="keep")
    assert sorted(flat(first[0]) + flat(second[0])) == list(range(ROWS)) and len(flat(first[0])) > 600
    assert warnings == []
    with pytest.raises(RunError, match="repartition is True: it must be 'auto', False, or a number"):
        run(ids_of_ranks(), one, repartition=True)


@pytest.mark.long
def test_an_interrupted_run_resumes_in_a_repartitioned_frame(run, spark, tmp_path):
    """On more ranks than before, in the middle of partitions that come from a shuffle."""

    def some(data):
        from torch import distributed

        ids = [batch["id"].tolist() for _, batch in zip(range(5), data)]
        data.save(None)
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, ids)
        return gathered

    df = aggregated(spark, None)
    taken, [warning] = run(some, df, uneven="keep", checkpoints=tmp_path)
    rest, warnings = run(ids_of_ranks(), df, uneven="keep", ranks=3, checkpoints=tmp_path, resume=True)
    assert "has 1 partition for 2 ranks" in warning and warnings == [], "the checkpoint knows the partitions"
    ids = [flat(batches) for batches in taken] + [flat(epoch) for rank in rest for epoch in rank]
    assert sorted(flat(ids)) == list(range(ROWS)) and len(flat(ids[:2])) == 10 * BATCH


def test_no_rows_are_an_error(run, spark):
    empty, some = spark.range(0, 100, 1, 4).where("id < 0"), spark.range(100)
    for df, options in ((empty, {"backend": None}), (spark.createDataFrame([], "id long"), {})):
        with pytest.raises(RunError, match="df has no rows"):
            run(lambda data: list(data)[-1], df, ranks=1, **options)
    with pytest.raises(RunError, match="validation has no rows"):
        run(lambda data: [(len(list(data)), len(list(data.validation)))], some, ranks=1, validation=empty)


def test_drop_without_a_step_is_an_error(run, spark):
    with pytest.raises(RankError, match="uneven='drop' leaves no step: rank 1 has fewer than 16 rows"):
        run(
            lambda data: len(list(data)),
            spark.range(0, 60, 1, 4).where("id < 50 and id >= 20 or id < 2"),
            uneven="drop",
        )
