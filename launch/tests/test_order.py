"""The same seed gives the same elements in the same order on each rank; another seed another order of partitions."""

import pytest

import databases


@pytest.fixture
def lines_by_rank(supply, tmp_path):
    database = databases.write(tmp_path / "lmdb", databases.numbered(200))

    def run(seed, *options):
        return [
            rank.lines for rank in supply(database, "--partitions", 20, "--seed", seed, *options, ranks=2, epochs=3)
        ]

    return run


def keys(lines, epoch):
    return [key for number, key, *_ in (line.split("\t") for line in lines) if int(number) == epoch]


def test_the_same_seed(lines_by_rank):
    assert lines_by_rank(7) == lines_by_rank(7)


def test_another_seed(lines_by_rank):
    first, second = lines_by_rank(7), lines_by_rank(8)
    for rank in range(2):
        assert keys(first[rank], 0) != keys(second[rank], 0)


def test_another_order_in_each_epoch(lines_by_rank):
    for lines in lines_by_rank(7):
        first, second, third = (keys(lines, epoch) for epoch in range(3))
        assert first != second != third != first
        assert sorted(first) == sorted(second) == sorted(third)


def test_the_elements_of_a_partition_in_their_order(lines_by_rank):
    for lines in lines_by_rank(7):
        in_order = keys(lines, 0)
        partitions = [in_order[start : start + 10] for start in range(0, len(in_order), 10)]
        assert all(partition == sorted(partition) for partition in partitions)
