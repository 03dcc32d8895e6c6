"""Another process writes to an LMDB, or replaces it, while ranks read its data in place (--in-place)."""

import os
import shutil
import subprocess

import pytest

import databases
import headers
from file_writers import WRITE, WRITERS
from ranks import END_OF_PATIENCE, multiset, one_line
from supplier import SupplierFailure
from users import FEEDERS, give_to_alice, needs_root
from waiting import wait_until

# No run ends by itself.
IN_PLACE = ("--in-place", "--epochs", 100_000)


@pytest.fixture
def data_file(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(200)) / "data.mdb"


@pytest.fixture
def supplied(supplier, start_ranks):
    """Starts a run, and waits until both ranks have got blocks in place."""

    def start(pairs, data_file, wait=True, **settings):
        receivers = start_ranks(pairs, 2, arguments=["--count"], **settings)
        run = supplier.start(data_file, pairs, *IN_PLACE, ranks=2)
        for local_rank in range(2) if wait else ():
            wait_until(lambda: headers.read(pairs.mapped_file(local_rank), "published") > 10)
        return receivers, run

    return start


def fails(receivers, run):
    """All fail. Returns the Supplier's line, and the lines of the ranks."""
    with pytest.raises(SupplierFailure) as failure:
        run.result(timeout=END_OF_PATIENCE)
    assert [rank.finish() for rank in receivers] == [1, 1]
    return str(failure.value), [one_line(rank) for rank in receivers]


def ranks_refuse(receivers, run, data_file, why):
    """The Supplier's line has the text of a rank, which names the file."""
    line, lines = fails(receivers, run)
    assert "the rank failed: " in line and str(data_file) in line and why in line
    assert all(str(data_file) in line and why in line for line in lines)


def test_a_file_that_is_open_for_writing_before_the_run(supplied, make_pairs, data_file):
    with open(data_file, "r+b"):
        ranks_refuse(*supplied(make_pairs(2), data_file, wait=False), data_file, "is open for writing")


@pytest.mark.parametrize("command, status", WRITERS.values(), ids=WRITERS)
def test_nobody_writes_before_the_ranks_have_failed(supplied, make_pairs, data_file, command, status):
    receivers, run = supplied(make_pairs(2), data_file)
    with subprocess.Popen(["bash", "-c", command.format(data_file)], stderr=subprocess.DEVNULL) as other:
        ranks_refuse(receivers, run, data_file, "is open for writing")
        assert other.wait(timeout=END_OF_PATIENCE) == status


def test_a_file_that_is_replaced(supplier, start_ranks, make_pairs, data_file, tmp_path):
    pairs = make_pairs(2)
    # Nobody reads their output yet, so they are in the middle of the run.
    receivers = start_ranks(pairs, 2)
    run = supplier.start(data_file, pairs, "--in-place", "--epochs", 200, ranks=2)
    wait_until(lambda: all(headers.read(pairs.mapped_file(rank), "released") > 0 for rank in range(2)))
    expected = databases.expected_lines(data_file, 200)
    other = databases.write(tmp_path / "other", databases.numbered(200, seed=1))
    os.replace(other / "data.mdb", data_file)
    assert [rank.finish() for rank in receivers] == [0, 0], [rank.error for rank in receivers]
    run.result(timeout=END_OF_PATIENCE)
    assert multiset(receivers) == expected


@pytest.fixture
def of_alice(make_pairs, data_file):
    """Pairs and ranks of a user who can have no lease of the file, and the file, where she can reach it."""
    pairs = make_pairs(2, group=FEEDERS)
    return pairs, give_to_alice(pairs), shutil.copy(data_file, pairs.folder.parent / "data.mdb")


@needs_root
def test_a_file_that_is_written_to_while_no_rank_has_a_lease(supplied, of_alice):
    pairs, program, data_file = of_alice
    receivers, run = supplied(pairs, data_file, program=program)
    subprocess.run(["bash", "-c", WRITE.format(data_file)], check=True)
    # The ranks or their tasks notice it.
    for text in [*fails(receivers, run)[1], str(run.exception())]:
        assert f"{data_file}, which Spark supplies in place (--in-place), has changed" in text or (
            f"{data_file} has changed during the run" in text
        )


@needs_root
def test_a_rank_that_may_not_read_the_file(supplied, of_alice):
    pairs, program, data_file = of_alice
    os.chmod(data_file, 0o600)
    ranks_refuse(*supplied(pairs, data_file, wait=False, program=program), data_file, "cannot be opened by this rank")
