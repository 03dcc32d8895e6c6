"""Ranks read the data of an LMDB in the LMDB itself (--in-place)."""

import pytest

import databases


@pytest.mark.parametrize(
    "options",
    [(), ("--shuffle", "elements", "--shuffle-buffer", 16), ("--resident",), ("--block-elements", 10)],
    ids=["in order", "shuffled", "resident", "steps"],
)
def test_every_element_once(supply, database, options):
    supply(database, "--in-place", "--partitions", 7, *options, ranks=2, epochs=3, ring="256KiB", block="4KiB")


def test_elements_larger_than_a_block(supply, tmp_path):
    elements = databases.numbered(6, bytes_of=lambda number: number * 40_000)
    supply(databases.write(tmp_path / "lmdb", elements), "--in-place", block="4KiB", ring="16KiB")


def test_with_a_storage_level(both_sides_fail, database):
    text = both_sides_fail(database, "--in-place", "--storage-level", "MEMORY_ONLY")
    assert "--in-place" in text and "--storage-level MEMORY_ONLY" in text
