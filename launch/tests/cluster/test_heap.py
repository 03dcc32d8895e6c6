"""Spark caches partitions on the node of their rank, and more data than the executor's heap can hold."""

import random

import pytest

import databases
from supplier import SupplierFailure
from waiting import wait_until

ELEMENT_BYTES = 256 << 10
# Four times the heap of the one executor that feeds it (conftest.py).
ELEMENTS = (4 * 512 << 20) // ELEMENT_BYTES
PARTITIONS = 6


def test_partitions_are_kept_where_their_rank_is(supplier, make_run, database):
    run = make_run(1, 1)
    run.start("--count")
    supplied = run.start_supplier(
        supplier, database, "--epochs", 1_000_000, "--partitions", PARTITIONS, "--storage-level", "MEMORY_ONLY"
    )
    wait_until(lambda: supplied.done() or len(supplier.cached_partitions()) == PARTITIONS)
    kept = supplier.cached_partitions()
    run.process.terminate()
    with pytest.raises(SupplierFailure):
        supplied.result()
    assert kept == {partition: [f"node-{1 + partition % 2}"] for partition in range(PARTITIONS)}


@pytest.fixture(scope="module")
def large_database(tmp_path_factory):
    random.seed(0)
    data = [random.randbytes(ELEMENT_BYTES) for _ in range(16)]
    values = (
        (b"%08d" % number, databases.datum(data[number % len(data)], number % 10).SerializeToString())
        for number in range(ELEMENTS)
    )
    return databases.write_values(
        tmp_path_factory.mktemp("large-database") / "lmdb", values, map_size=2 * ELEMENTS * ELEMENT_BYTES
    )


@pytest.fixture(scope="module")
def large_lines(large_database):
    return databases.expected_lines(large_database, epochs=2)


def supply(supplier, make_run, database, lines, partitions, storage_level):
    run = make_run(2, ring="2MiB", block="512KiB")
    run.start()
    supplied = run.start_supplier(
        supplier, database, "--epochs", 2, "--partitions", partitions, "--storage-level", storage_level
    )
    run.ends_well(supplied, lines)


# YARN counts the pages of the LMDB, too: they do not fit into the container.
@pytest.mark.long
@pytest.mark.parametrize(
    "storage_level", ["none", "MEMORY_ONLY", "MEMORY_AND_DISK", "MEMORY_AND_DISK_SER", "DISK_ONLY"]
)
def test_four_times_the_heap(supplier, make_run, large_database, large_lines, storage_level):
    supply(supplier, make_run, large_database, large_lines, 16, storage_level)


@pytest.mark.long
@pytest.mark.parametrize("storage_level", ["MEMORY_ONLY", "MEMORY_AND_DISK"])
def test_a_partition_larger_than_the_heap(supplier, make_run, large_database, large_lines, storage_level):
    supply(supplier, make_run, large_database, large_lines, 2, storage_level)
