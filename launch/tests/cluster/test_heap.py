"""An LMDB of more data than the executor's heap can hold."""

import random

import pytest

import databases

ELEMENT_BYTES = 256 << 10
# Four times the heap of the one executor that feeds it (conftest.py).
ELEMENTS = (4 * 512 << 20) // ELEMENT_BYTES


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


# YARN counts the pages of the LMDB, too: they do not fit into the container.
@pytest.mark.long
def test_four_times_the_heap(supplier, make_run, large_database):
    run = make_run(2, ring="2MiB", block="512KiB")
    run.start()
    supplied = run.start_supplier(supplier, large_database, "--epochs", 2, "--partitions", 16)
    run.ends_well(supplied, databases.expected_lines(large_database, epochs=2))
