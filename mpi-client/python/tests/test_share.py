"""Ranks that read one ring: Rows(share=...), and Reader's options. Real Spark, real ranks."""

import concurrent.futures
import json
import logging
import os
import pathlib
import runpy
import signal
from typing import Any

import pytest
import spark_supplier
from spark_supplier import Mpirun, Rows, RunError, Supplier
from spark_supplier.driver.placement import place
from spark_supplier.errors import ConfigError
from spark_supplier.launch import config_files

from layout import ROOT
from supplier_session import only_classic, session_fixture

LIMIT_SECONDS = 60
spark = session_fixture(5)


def seen(data, kill="", mark=""):
    """By rank, the ids of each batch of each epoch, and of its validation. kill: a rank, after its third batch."""
    from torch import distributed

    rank, epochs = distributed.get_rank(), data.saved or []
    for epoch in data.epochs():
        if not epochs or len(epochs) <= epoch.number:
            epochs.append([])
        for batch in epoch:
            epochs[-1].append(batch["id"].tolist())
            data.save(epochs) if kill else None
            if str(rank) == kill and len(epochs[-1]) == 3 and not pathlib.Path(mark).exists():
                pathlib.Path(mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        if data.validation is not None:
            epochs[-1] += [batch["id"].tolist() for batch in data.validation]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, epochs)
    return gathered


def doubled(groups):
    return [of_rank for of_rank in groups for _ in range(2)]


def flat(epochs):
    return [number for batches in epochs for batch in batches for number in batch]


def test_groups_get_what_as_many_ranks_get(spark, warm, caplog):
    """Padded, from the node's memory in the second epoch, and with validation."""

    def run(ranks, share):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="spark_supplier"):
            found = warm(
                seen, spark.range(0, 7 * 20, 1, 7), ranks=ranks, share=share, batch_size=16, epochs=2,
                validation=spark.range(1000, 1040, 1, 2), cache="memory", zero_copy=True,
                # What an executor's environment says is for ranks that a user starts.
                environment=None if share else {"SUPPLY_SHARE": "2"},
            )  # fmt: skip
        return found, [record.getMessage() for record in caplog.records if "equal steps" in record.getMessage()]

    (alone, said), (groups, said_of_groups) = run(2, None), run(4, 2)
    assert groups == doubled(alone) and alone[0] != alone[1]
    # A row that a group repeats is counted once.
    assert said == said_of_groups and "repeated 40 rows" in said[0]


@pytest.mark.parametrize("launcher", ["torch", pytest.param(Mpirun(), marks=pytest.mark.long)])
def test_groups_exchange_rows_as_ranks_do(spark, warm, launcher):
    df = spark.range(0, 400, 1, 4)
    groups = warm(
        seen, df, ranks=4, share=2, launcher=launcher, shuffle="all", batch_size=16, epochs=2, uneven="keep",
    )  # fmt: skip
    assert groups == doubled(groups[::2])
    first, second = (flat(epochs) for epochs in groups[::2])
    assert sorted(first + second) == sorted(2 * list(range(400)))
    # Each has rows of the other one's partitions.
    assert 120 < sum(number < 200 for number in first) < 280


def test_all_ranks_of_a_node(spark, warm):
    def predict(data):
        with data.results() as out:
            for batch in data:
                out.write({"id": batch["id"], "rank": [int(os.environ["RANK"])] * len(batch["id"])})
        return int(data.results is not None)

    df = spark.range(0, 100, 1, 4)
    groups = warm(seen, df, ranks=3, share="node", batch_size=16)
    assert groups[0] == groups[1] == groups[2] and sorted(flat(groups[0])) == list(range(100))
    # A result has each row once, of the first rank of each group.
    found = warm(predict, df, ranks=3, share="node", batch_size=16, results="id long, rank int")
    assert sorted(map(tuple, found.rows.collect())) == [(number, 0) for number in range(100)]
    found.release()


def test_a_group_starts_again_where_its_ranks_saved(spark, memory, tmp_path):
    """A killed reader. Then a call with other groups is refused, and one with fewer groups continues."""
    rows = Rows(spark.range(0, 192, 1, 4), batch_size=16, epochs=2, seed=3, shuffle="rows", share=2)
    supplier = Supplier(ranks=4, restarts=1, folder=memory, checkpoints=tmp_path / "checkpoints")
    killed = supplier.run(seen, rows, kill="3", mark=str(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()
    assert killed == doubled(killed[::2])
    for epoch in range(2):
        assert sorted(flat([killed[0][epoch], killed[2][epoch]])) == list(range(192))
    with pytest.raises(RunError, match="is of a call with share=2, and this one has share=None"):
        supplier.run(seen, Rows(spark.range(0, 192, 1, 4), seed=3), resume=True)


def test_what_cannot_be_shared_is_refused_early(spark):
    df = spark.range(4)
    wrong: list[Any] = [0, -1, 1.5, True, "nodes"]
    for share in wrong:
        with pytest.raises(RunError, match="share is .*: it must be a number of neighbouring ranks, or 'node'"):
            Rows(df, share=share)
    with pytest.raises(RunError, match="order='global' deals each batch to all ranks"):
        Rows(df, order="global", share=2)
    for supplier in (Supplier(ranks=3), Supplier(ranks=1, launcher="here")):
        with pytest.raises(RunError, match=r"share is 2, and ranks is \d: each 2 neighbouring ranks get the same"):
            supplier.run(seen, Rows(df, share=2))


def test_groups_are_whole_on_each_node():
    assert place({"a": 3, "b": 2}, {}, 6, 1, 2) == {"a": [0, 1, 2, 3], "b": [4, 5]}
    assert place({"a": 2, "b": 2}, {}, 6, 1, 2) == {}
    # With validation a group has two tasks.
    assert place({"a": 3, "b": 5}, {}, 9, 2, 3) == {"a": [0, 1, 2], "b": [3, 4, 5, 6, 7, 8]}


def test_a_layer_over_two_ranks_equals_that_of_one(spark, memory):
    example = runpy.run_path(str(ROOT / "mpi-client/python/examples/tensor_parallel.py"))
    (weight, loss), (weight_of_one, loss_of_one) = example["compared"](
        spark, lambda ranks: Supplier(ranks=ranks, folder=memory)
    )
    assert weight.tolist() == weight_of_one.tolist() and loss == loss_of_one < 1


@only_classic("the ranks are this process")
def test_readers_of_a_stream(spark, tmp_path):
    mapped_files, named_pipes = config_files.write(2, tmp_path, tmp_path)

    def read(reader):
        found = []
        with spark_supplier.ranks.open(tmp_path, reader, reader=reader, readers=2, timeout=LIMIT_SECONDS) as s:
            while not s.at_end_of_data:
                found += [(block.epoch, block.numpy("id").tolist()) for block in s.epoch()]
        return found

    source = tmp_path / "in"
    source.mkdir()
    for file in range(2):
        (source / f"{file}.json").write_text("".join(json.dumps({"id": 10 * file + i}) + "\n" for i in range(10)))
    options = {
        "checkpointLocation": tmp_path / "checkpoint", "ranks": 2, "share": 2, "block-elements": 4,
        "mapped-files": mapped_files, "named-pipes": named_pipes,
    }  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(2) as background:
        # A reader that comes first waits.
        readers = [background.submit(read, reader) for reader in (1, 0)]
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(source))
        query = stream.writeStream.format("supply").options(**options).start()
        query.processAllAvailable()
        query.stop()
        first, second = (reader.result(LIMIT_SECONDS) for reader in readers)
    assert first == second and [epoch for epoch, _ in first] == [0, 0, 0, 1, 1, 1]
    assert sorted(number for _, ids in first for number in ids) == list(range(20))


def test_a_reader_is_one_of_its_ring(tmp_path):
    for reader, readers, text in ((0, None, "give both, or neither"), (2, 2, "counted from 0")):
        with pytest.raises(ConfigError, match=text):
            spark_supplier.ranks.open(tmp_path, 0, reader=reader, readers=readers)


def test_a_batch_of_all_ranks_is_larger_than_the_ring(spark, memory):
    def steps(data):
        from torch import distributed

        seen = 0
        for batch in data:
            distributed.barrier()
            seen += len(batch["id"])
        return seen

    frame = spark.range(0, 600, 1, 4).selectExpr("id", "repeat('x', 8000) as text")
    rows = Rows(frame, order="global", batch_size=300)
    assert Supplier(ranks=4, folder=memory, ring="256KiB", block="64KiB").run(steps, rows) == 150
