"""Fixtures of the tests across the two languages."""

import contextlib
import os
import pathlib
import signal
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "mpi-client" / "python" / "src")]
sys.path.append(str(ROOT / "mpi-client" / "python" / "tests"))

import databases
from ending import end_in_order
from pairs import Pairs
from ranks import Rank, multiset, one_line
from small_file_system import NotMounted, mounted
from supplier import Supplier, SupplierFailure, rows
from supply_run import SupplyRun


def pytest_configure():
    end_in_order()


@pytest.fixture(scope="session")
def supplier(tmp_path_factory):
    supplier = Supplier(tmp_path_factory.mktemp("spark"))
    yield supplier
    supplier.stop()


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """Elements of all sizes, for some fifty blocks of 4 KiB an epoch."""
    elements = databases.numbered(400, bytes_of=lambda number: number * 37 % 1000)
    return databases.write(tmp_path_factory.mktemp("database") / "lmdb", elements)


@pytest.fixture
def make_pairs():
    """Makes config files for pairs on tmpfs. At the end no file of the pairs may be left."""
    made = []
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:

        def make(count=1, **sizes):
            made.append(Pairs(pathlib.Path(folder, str(len(made))), count, **sizes))
            return made[-1]

        yield make
        assert [pairs.left_behind() for pairs in made] == [[]] * len(made)


@pytest.fixture
def make_small_file_system(tmp_path):
    with contextlib.ExitStack() as mounts:

        def make(size):
            try:
                return mounts.enter_context(mounted(tmp_path / "small", size))
            except NotMounted as error:
                pytest.skip(str(error))

        yield make


@pytest.fixture
def start_rank():
    """Starts ranks, and ends them at the end of the test."""
    started = []

    def start(*arguments, **options):
        started.append(Rank(*arguments, **options))
        return started[-1]

    yield start
    for rank in started:
        rank.end()


@pytest.fixture
def start_ranks(start_rank):
    def start(pairs, count, **options):
        return [start_rank(pairs, local_rank, **options) for local_rank in range(count)]

    return start


@pytest.fixture
def supply(supplier, make_pairs, start_ranks):
    """Runs the Supplier and ranks to the end, and checks the result with an independent reader. Returns the ranks."""

    def run(database, *options, ranks=1, epochs=1, expected=None, **sizes):
        pairs = make_pairs(ranks, **sizes)
        receivers = start_ranks(pairs, ranks)
        run = supplier.start(database, pairs, "--epochs", epochs, *options, ranks=ranks)
        for rank in receivers:
            assert rank.finish() == 0, rank.error
            assert rank.error == ""
        assert multiset(receivers) == (expected or databases.expected_lines(database, epochs))
        table = rows(run.result())
        assert [int(row["rank"]) for row in table] == list(range(ranks))
        assert [int(row["elements"]) for row in table] == [len(rank.lines) for rank in receivers]
        return receivers

    return run


@pytest.fixture
def both_sides_fail(supplier, make_pairs, start_ranks):
    """Runs until the Supplier and each rank have failed with the same text. Returns the text."""

    def run(database, *options, ranks=2, **sizes):
        pairs = make_pairs(ranks, **sizes)
        receivers = start_ranks(pairs, ranks)
        with pytest.raises(SupplierFailure) as failure:
            supplier.start(database, pairs, *options, ranks=ranks).result()
        text = str(failure.value)
        assert [rank.finish() for rank in receivers] == [1] * ranks
        assert [one_line(rank) for rank in receivers] == [text] * ranks
        return text

    return run


@pytest.fixture
def supply_run(tmp_path):
    started = []

    def start(*arguments, **options):
        folder = tmp_path / f"run-{len(started)}"
        folder.mkdir()
        started.append(SupplyRun(folder, *arguments, **options))
        return started[-1]

    yield start
    for run in started:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGTERM)
            run.finish()
        # The run's own folder in /dev/shm, or the pairs in the user's folder.
        if run.noted.exists():
            config = pathlib.Path(run.noted.read_text().strip())
            assert not config.parent.exists() or {file.suffix for file in config.parent.iterdir()} == {".conf"}
