"""Resident blocks (--resident): the ranks get the same data. If a ring is too small, the error names the right size."""

import re

import pytest

import databases
from ranks import one_line
from supplier import SupplierFailure

# 200 elements in 20 partitions on two ranks, at most 4 KiB a partition: 10 blocks, and two ends.
ROOMY = {"ring": "64KiB", "block": "4KiB"}


@pytest.fixture
def database(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(200))


@pytest.mark.parametrize("options", [(), ("--block-elements", 7), ("--storage-level", "MEMORY_ONLY")], ids=str)
def test_the_same_elements_in_the_same_order(supply, database, options):
    sizes = {**ROOMY, "ring": "128KiB"} if options else ROOMY

    def run(*resident):
        options_of_run = ("--partitions", 20, "--seed", 7, *options, *resident)
        return [rank.lines for rank in supply(database, *options_of_run, ranks=2, epochs=5, **sizes)]

    assert run("--resident") == run()


def test_more_ranks_than_partitions(supply, database):
    supply(database, "--partitions", 2, "--resident", ranks=3, epochs=4, **ROOMY)


def test_a_ring_that_is_too_small(supplier, supply, make_pairs, start_ranks, database):
    pairs = make_pairs(1, ring="16KiB", block="4KiB")
    [rank] = start_ranks(pairs, 1)
    run = supplier.start(database, pairs, "--resident", "--epochs", 3)
    with pytest.raises(SupplierFailure) as failure:
        run.result()
    text = str(failure.value)
    assert rank.finish() == 1 and one_line(rank) == text
    assert "pair of rank 0" in text and str(pairs.mapped_file(0)) in text and f"{pairs.mapped_files}:" in text
    need, there, ring, block = re.search(
        r"they need (\d+) bytes .* there are (\d+): set ring=(\d+) block=(\d+)", text
    ).groups()
    assert (there, block, ring) == (str(16 << 10), str(4 << 10), need)
    # The size in the message is enough, and no byte too many.
    supply(database, "--resident", epochs=3, ring=ring, block=block)
    pairs = make_pairs(1, ring=str(int(ring) - 4096), block=block)
    [rank] = start_ranks(pairs, 1)
    with pytest.raises(SupplierFailure, match=f"they need {need} bytes"):
        supplier.start(database, pairs, "--resident", "--epochs", 3).result()
    assert rank.finish() == 1
