"""A program that cuts the mapped file of a pair ends the run with that cause, and not Spark."""

import glob
import os
import pathlib
import time

import pytest
from spark_supplier import Rows, RunError, Supplier

from supplier_session import rows, session_fixture, shared_memory

spark = session_fixture(3)


def wait_for(file):
    while not file.exists():
        time.sleep(0.01)


def cut(data, folder, left, by):
    """Rank `by` cuts the file of rank 0. Then all ranks read on."""
    batches = iter(data)
    next(batches)
    begun, done = pathlib.Path(folder, "begun"), pathlib.Path(folder, "done")
    if os.environ["RANK"] == "0":
        begun.touch()
    wait_for(begun)
    if os.environ["RANK"] == by:
        (name,) = glob.glob(f"{folder}/supply-*/train-0.mapped")
        os.truncate(name, left)
        done.touch()
    wait_for(done)
    for _ in batches:
        pass
    time.sleep(60)


# The end of the ring, all of it, and the whole file.
@pytest.mark.parametrize(
    "left, by",
    [(1 << 18, "1"), *(pytest.param(*each, marks=pytest.mark.long) for each in ((0, "1"), (1 << 16, "0"), (0, "0")))],
)
def test_a_cut_file_is_the_cause(spark, left, by):
    with shared_memory() as folder:
        supplier = Supplier(ranks=2, ring="512KiB", block="64KiB", folder=folder, backend=None)
        text = rf"mapped file {folder}/supply-.*/train-0.mapped was cut from 589824 to {left} bytes"
        with pytest.raises(RunError, match=text):
            supplier.run(cut, Rows(rows(spark, 300_000), batch_size=1024), folder, left, by)
        for name in ("begun", "done"):
            pathlib.Path(folder, name).unlink()
    assert spark.range(100).count() == 100
