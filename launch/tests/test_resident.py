"""Later epochs from memory (--resident): the ranks get the same data, and nothing is left beside the mapped files."""

import pytest

import databases

SMALL = {"ring": "16KiB", "block": "4KiB"}


@pytest.fixture
def database(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(200))


@pytest.mark.parametrize("options", [(), ("--block-elements", 7)], ids=str)
def test_the_same_elements_in_the_same_order(supply, database, options):
    def run(*resident):
        options_of_run = ("--partitions", 20, "--seed", 7, *options, *resident)
        return [rank.lines for rank in supply(database, *options_of_run, ranks=2, epochs=5, **SMALL)]

    assert run("--resident") == run()


def test_more_ranks_than_partitions(supply, database):
    supply(database, "--partitions", 2, "--resident", ranks=3, epochs=4, **SMALL)
