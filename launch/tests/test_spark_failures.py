"""A failure on the Spark side ends both sides. Both print the same line: what is wrong, where, and what to do."""

import re

import pytest

import databases
from supplier import SLOTS


def no_such_path(folder):
    return folder / "nowhere"


def with_value(folder, value):
    elements = [(key, element.SerializeToString()) for key, element in databases.numbered(20)]
    return databases.write_values(folder / "lmdb", [*elements, (b"00000009\xff/b", value)])


def not_a_datum(folder):
    return with_value(folder, b"\xff\xd8\xff\xe0 JFIF")


def large_element(folder):
    return databases.write(folder / "lmdb", [*databases.numbered(20), (b"large", databases.datum(b"x" * 70_000))])


# No rank has all its data before another rank's task fails.
ENDLESS = ("--epochs", 100_000)


@pytest.mark.parametrize(
    "make, wanted",
    [
        (no_such_path, r"no LMDB at .*/nowhere: no such file or directory \(--lmdb\)"),
        (not_a_datum, r"'00000009\\xff/b' of the LMDB .*/lmdb/data\.mdb is not a Datum"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_source_that_cannot_be_read(both_sides_fail, tmp_path, make, wanted):
    assert re.search(wanted, both_sides_fail(make(tmp_path), *ENDLESS))


def test_an_element_larger_than_a_block(both_sides_fail, tmp_path):
    text = both_sides_fail(large_element(tmp_path), *ENDLESS, ring="128KiB", block="64KiB")
    assert "'large'" in text and "block=" in text and "mapped-files.conf" in text


@pytest.fixture
def entries(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(20))


def test_fewer_task_slots_than_ranks(both_sides_fail, entries):
    text = both_sides_fail(entries, ranks=SLOTS + 1)
    assert f"slots for {SLOTS}" in text and f"master local[{SLOTS + 1}]" in text


@pytest.mark.parametrize("option, value", [("--partitions", "0"), ("--epochs", "many"), ("--epoch", "3")])
def test_an_option_with_a_wrong_value(both_sides_fail, entries, option, value):
    text = both_sides_fail(entries, option, value)
    assert option in text and value in text


@pytest.mark.parametrize("option, value", [("--shuffle-buffer", "-5"), ("--lmdb-cache", "/cache")])
def test_an_option_without_effect(both_sides_fail, entries, option, value):
    assert both_sides_fail(entries, option, value).startswith(f"{option} is for ")


def test_the_next_run_in_the_same_spark_goes_well(both_sides_fail, supply, entries, tmp_path):
    (tmp_path / "bad").mkdir()
    both_sides_fail(not_a_datum(tmp_path / "bad"), *ENDLESS)
    supply(entries, ranks=2)
