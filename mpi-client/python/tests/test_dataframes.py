"""A rank reads the rows that PySpark writes with format("supply")."""

import os
import pathlib

import pyarrow
import pytest
import spark_supplier

from layout import get
from result_file import read_result
from spark_program import LIMIT_SECONDS, SparkProgram

# Elements of build/digits/test_lmdb
HELD_OUT = 360


class Spark(SparkProgram):
    """Writes the DataFrames of frames.py to this process, the rank."""

    def __init__(self, log):
        super().__init__(log, "frames.py", TZ="UTC")

    def write(self, files, name, rows="", **options):
        self.send({"name": name, "folder": str(files.folder), "rows": str(rows), "options": options})

    def error(self):
        """Of the last request, or None."""
        return self.answer().get("error")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with open(tmp_path_factory.mktemp("spark") / "log", "w") as log:
        started = Spark(log)
        yield started
        started.end()


def read(files, epochs):
    """The rows of each epoch, sorted by `id`, and the number of rows of each block."""
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        tables, counts = [], []
        for _ in range(epochs):
            batches = []
            for block in s.epoch():
                counts.append(len(block))
                batches.append(pyarrow.record_batch(block).to_pylist())
            tables.append(sorted((row for batch in batches for row in batch), key=lambda row: row["id"]))
        assert s.next_block() is None and s.at_end_of_data
    return tables, counts


def counts(s):
    """The elements and steps of a whole epoch, as far as they are known."""
    return s.epoch_elements, s.epoch_steps


NAMES = [
    "every-type",
    "nullable",
    "numbers",
    "shuffled",
    "parquet",
    "orc",
    "cached",
    "nested",
    "nested-parquet",
    "nested-cached",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_arrives_unchanged_in_every_epoch(files, spark, tmp_path, name):
    spark.write(files, name, tmp_path / "rows.arrow", epochs=2, seed=7, **{"block-elements": 48})
    tables, counts = read(files, epochs=2)
    assert spark.error() is None
    with pyarrow.OSFile(str(tmp_path / "rows.arrow")) as file:
        expected = pyarrow.ipc.open_file(file).read_all().to_pylist()
    assert len(expected) == 1000 and tables == [expected, expected]
    # Blocks of the pair are small, and 48 rows of all these columns do not fit.
    assert max(counts) == 48 or name.startswith("nested")


@pytest.mark.parametrize("name", ["every-type", "nullable", "parquet", "cached"])
def test_every_row_goes_back_unchanged_as_a_result(files, spark, tmp_path, name):
    spark.write(files, name, tmp_path / "rows.arrow")
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        block = s.next_block()
        with s.results() as out:
            while block is not None:
                out.write(block)
                block = s.next_block()
    assert spark.error() is None
    path = f"{files.paths[0]}.results.result"
    with pyarrow.OSFile(str(tmp_path / "rows.arrow")) as file:
        expected = pyarrow.ipc.open_file(file).read_all().to_pylist()
    assert sorted(read_result(path).to_pylist(), key=lambda row: row["id"]) == expected
    header = pathlib.Path(path).read_bytes()[:4096]
    assert get(header, "mapped_file_header", "run") != 0
    # In local mode the executor is the driver, a child of the program.
    os.kill(get(header, "mapped_file_header", "task_pid"), 0)


@pytest.mark.parametrize("name", ["numbers", "cached"])
def test_shuffled_rows_come_in_whole_blocks(files, spark, name):
    # A partition has 250 rows: 4 blocks of 64 with padding, in another order in each epoch.
    spark.write(files, name, epochs=2, shuffle="rows", uneven="pad", **{"block-elements": 64})
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        epochs = [[(block.partition, block.numpy("id", copy=True).tolist()) for block in s.epoch()] for _ in range(2)]
        assert counts(s) == (16 * 64, 16)
        assert s.next_block() is None and s.at_end_of_data
    assert spark.error() is None
    for blocks in epochs:
        assert len(blocks) == 16 and all(len(ids) == 64 for _, ids in blocks)
        assert {i for _, ids in blocks for i in ids} == set(range(1000))
        assert all(i // 250 == partition for partition, ids in blocks for i in ids)
        assert all(ids != sorted(ids) for _, ids in blocks)
    assert epochs[0] != epochs[1] and sorted(epochs[0]) != sorted(epochs[1])


def test_the_elements_of_an_epoch_are_known_at_its_end(files, spark):
    spark.write(files, "numbers", epochs=2, **{"block-elements": 48})
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        # The ring has four slots, so the task cannot have supplied the epoch yet.
        assert s.next_block() is not None and counts(s) == (None, None)
        assert sum(1 for _ in s.epoch()) > 4
        assert counts(s) == (1000, None)
        for _ in s:
            pass
    assert spark.error() is None


def test_a_frame_without_rows_is_supplied(files, spark):
    spark.write(files, "empty")
    assert read(files, epochs=1) == ([[]], [])
    assert spark.error() is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("intervals", ["'span' is interval, use cast(span as string)", "'within.item.none' is void, use a cast"]),
        ("indeterminate", ["Spark may compute other rows each time", "write it to files first"]),
        ("uneven-lists", ["column 'list' has an array of 1 numbers, and one of 2", "let its lists vary"]),
    ],
)
def test_both_sides_name_a_column_that_cannot_be_supplied(files, spark, name, says):
    spark.write(files, name)
    with pytest.raises(spark_supplier.SupplyError) as failure:
        read(files, epochs=1)
    error = spark.error()
    for text in says:
        assert text in str(failure.value) and text in error


def test_lists_may_differ_in_length_after_the_first_rows(files, spark):
    spark.write(files, "uneven-lists", lists="varying")
    [rows], _ = read(files, epochs=1)
    assert spark.error() is None
    assert [row["list"] for row in rows] == [[1, 2] if id < 900 else [1] for id in range(1000)]


def test_an_unknown_option_is_refused_with_the_nearest_name(files, spark):
    spark.write(files, "numbers", epoch=2)
    error = spark.error()
    assert "--epoch" in error and "did you mean --epochs?" in error


def test_an_lmdb_is_a_frame_of_seven_columns(files, spark):
    spark.write(files, "lmdb")
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        rows = [row for block in s for row in pyarrow.record_batch(block).to_pylist()]
    assert spark.error() is None
    assert len(rows) == HELD_OUT and len({row["key"] for row in rows}) == HELD_OUT
    assert all((row["channels"], row["height"], row["width"], len(row["data"])) == (1, 8, 8, 64) for row in rows)
    assert {row["label"] for row in rows} == set(range(10))


def test_unordered_rows_cannot_resume_inside_a_partition(files, spark):
    spark.write(files, "shuffled", **{"block-elements": 10})
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        s.next_block()
        position = s.position
    assert "RankEndedException" in spark.error()
    spark.write(files, "shuffled", **{"block-elements": 10})
    with (
        pytest.raises(
            spark_supplier.SupplyError, match="cannot resume after element 10 of partition .* in no certain order"
        ),
        spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS, position=position) as s,
    ):
        s.next_block()
    assert "in no certain order" in spark.error()
