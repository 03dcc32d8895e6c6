"""Spark supplies ranks that have no pair of their own."""

import pytest

from fed_job import LIMIT_SECONDS, NEEDS_MPI
from spark_program import SparkProgram

pytestmark = NEEDS_MPI
# Of the DataFrames of frames.py
ROWS = 1000


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with open(tmp_path_factory.mktemp("spark") / "log", "w") as log:
        started = SparkProgram(log, "frames.py", TZ="UTC")
        yield started
        started.end()


@pytest.mark.parametrize("feeders, ranks", [(1, 2), (2, 1)])
def test_every_row_of_a_data_frame_arrives_unchanged(spark, make_job, feeders, ranks):
    job = make_job(2, timeout=LIMIT_SECONDS)
    job.start(feeders, ranks, "compare")
    options = {"epochs": 2, "ranks": 2, "block-elements": 16}
    folder, rows = str(job.folder), str(job.folder / "rows.arrow")
    spark.send({"name": "every-type", "folder": folder, "rows": rows, "options": options})
    job.succeed()
    assert spark.answer().get("error") is None
    for epoch in range(2):
        assert sorted(number for epochs in job.outcomes() for number in epochs[epoch]) == [*range(ROWS)]
