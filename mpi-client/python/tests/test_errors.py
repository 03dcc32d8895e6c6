"""Failures as exceptions."""

import copy
import errno
import gc
import pickle
import subprocess
import sys

import pyarrow
import pytest
import spark_supplier
from spark_supplier.errors import raise_status

from values import numbers


def test_a_failure_of_spark(pair):
    rank, task = pair
    task.fail("the source is gone")
    with pytest.raises(spark_supplier.SparkError, match="^the source is gone$") as failure:
        rank.next_block()
    assert failure.value.status == "SUPPLY_ERROR_SPARK"


def test_an_exception_of_a_rank_keeps_its_cause_and_notes_when_it_is_pickled():
    for cause in (ValueError("bad row"), None, spark_supplier.ConfigError("no folder")):
        error = spark_supplier.errors.RankError("rank 1 failed", 1, "node")
        error.__cause__, error.status = cause, "SUPPLY_ERROR_SPARK"
        vars(error)["__notes__"] = ["a note"]
        found = copy.copy(pickle.loads(pickle.dumps(error)))
        assert (str(found), found.rank, found.host, found.status) == ("rank 1 failed", 1, "node", "SUPPLY_ERROR_SPARK")
        assert (type(found.__cause__), str(found.__cause__)) == (type(cause), str(cause))
        assert vars(found)["__notes__"] == ["a note"]
    error.__cause__ = ValueError(lambda: None)
    assert pickle.loads(pickle.dumps(error)).__cause__ is None


def test_a_task_that_supplies_nothing(open_pair):
    rank, _ = open_pair(timeout=0.2)
    with pytest.raises(TimeoutError, match="SUPPLY_TIMEOUT"):
        rank.next_block()


def test_a_pair_in_use(files, pair):
    with pytest.raises(spark_supplier.InUseError):
        spark_supplier.ranks.open(files.folder, 0)


def test_config_files_are_named(tmp_path):
    with pytest.raises(spark_supplier.ConfigError, match=f"{tmp_path}/mapped-files.conf"):
        spark_supplier.ranks.open(tmp_path, 0)


NO_DESCRIPTORS = """
import resource, sys, spark_supplier
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
config = open(sys.argv[1] + "/mapped-files.conf")
resource.setrlimit(resource.RLIMIT_NOFILE, (config.fileno() + 2, hard))
try:
    spark_supplier.ranks.open(sys.argv[1], 0)
except OSError as error:
    print(type(error).__name__, error.status, error.errno, isinstance(error, spark_supplier.SupplyError))
"""


def test_a_system_call_that_fails_is_an_os_error(files):
    program = subprocess.run(
        [sys.executable, "-c", NO_DESCRIPTORS, str(files.folder)], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert program.stdout == f"SupplyOSError SUPPLY_ERROR_SYSTEM {errno.EMFILE} True\n"


def test_no_memory_is_a_memory_error():
    with pytest.raises(MemoryError, match="^out of memory$") as failure:
        raise_status("SUPPLY_ERROR_MEMORY", "out of memory", 0)
    assert isinstance(failure.value, spark_supplier.SupplyError)


def test_the_text_of_an_os_error_is_unchanged():
    with pytest.raises(OSError, match="^pair 0: poll failed$") as failure:
        raise_status("SUPPLY_ERROR_SYSTEM", "pair 0: poll failed", errno.EBADF)
    assert failure.value.errno == errno.EBADF


def test_a_failure_that_was_caught_keeps_no_block(pair):
    rank, task = pair
    for block in range(task.header("block_count")):
        task.supply(numbers(block))

    def receive_too_much():
        held = [rank.next_block() for _ in range(task.header("block_count"))]
        with pytest.raises(spark_supplier.RingFullError):
            rank.next_block()
        return len(held)

    gc.disable()
    try:
        assert receive_too_much() == task.header("released")
    finally:
        gc.enable()


def test_a_position_that_is_none(files):
    with pytest.raises(spark_supplier.SupplyError, match="position 'bogus'"):
        spark_supplier.ranks.open(files.folder, 0, position="bogus")


def test_no_schema_before_a_task_attaches(pair):
    rank, task = pair
    with pytest.raises(spark_supplier.SupplyError) as failure:
        pyarrow.schema(rank)
    assert failure.value.status == "SUPPLY_ERROR_NO_SCHEMA"
    task.supply(numbers(0))
    assert pyarrow.schema(rank) == numbers(0).schema, "no block has been received"
