"""A streaming query of PySpark. Its driver is killed, and the rank continues with the next one."""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import pyarrow
import pytest
import spark_supplier

from layout import JAR, SPARK_PYTHON

LIMIT_SECONDS = 120
# A file has five blocks of 4 rows. The second file's third block is published after P3 was passed eight times (the end
# of the first epoch counts).
ROWS, IN_SECOND_BATCH, BATCHES = 20, 8, 4


def row(number):
    return {"id": number, "point": [number / 2, number + 1.0]}


def put(folder, file):
    """Spark ignores hidden files, so it never reads half a file."""
    rows = [row(number) for number in range(file * ROWS, (file + 1) * ROWS)]
    hidden = folder / f".{file}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(folder / f"{file}.json")


def start(folder, config, log, **environment):
    return subprocess.Popen(
        [SPARK_PYTHON, pathlib.Path(__file__).with_name("streams.py"), folder, config, str(BATCHES - 1)],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {JAR} pyspark-shell", **environment},
        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    )  # fmt: skip


def read(config):
    """The rows of each epoch. The last list has the rows after the last end of an epoch."""
    epochs: list[list[dict[str, object]]] = [[]]
    with spark_supplier.ranks.open(config, 0, timeout=LIMIT_SECONDS) as s:
        while not s.at_end_of_data:
            for block in s.epoch():
                assert block.epoch == len(epochs) - 1
                epochs[-1] += pyarrow.record_batch(block).to_pylist()
            epochs.append([])
    return epochs[:-1]


@pytest.mark.long
def test_a_killed_driver_resumes_in_the_middle_of_a_batch(files, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    fail_point = tmp_path / "fail-point"
    fail_point.write_text(f"P3:kill:after={IN_SECOND_BATCH}")
    for file in range(BATCHES - 1):
        put(source, file)
    with open(tmp_path / "log", "w") as log, concurrent.futures.ThreadPoolExecutor(1) as background:
        epochs = background.submit(read, files.folder)
        assert start(tmp_path, files.folder, log, SUPPLY_FAIL_POINT=str(fail_point)).wait(LIMIT_SECONDS) != 0
        assert not fail_point.exists()
        assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) == 1
        second = start(tmp_path, files.folder, log)
        try:
            put(source, BATCHES - 1)
            assert second.wait(LIMIT_SECONDS) == 0
        finally:
            second.kill()
        *batches, rest = epochs.result(LIMIT_SECONDS)
    assert rest == []
    files_of_batches = [rows[0]["id"] // ROWS for rows in batches]
    assert sorted(files_of_batches) == list(range(BATCHES))
    assert batches == [[row(file * ROWS + i) for i in range(ROWS)] for file in files_of_batches]
