"""A pair for each test, with a rank of this process and a task of the test."""

import os
import pathlib
import tempfile

import pytest
import supply
from layout import ROOT
from task import Task

assert not pathlib.Path(supply.__file__).is_relative_to(ROOT / "mpi-client"), (
    "the wheel is to be tested, not the sources"
)


class PairFiles:
    """The config files of one pair, and the files that they name."""

    def __init__(self, folder, ring="64KiB", block="16KiB"):
        self.folder = folder
        self.paths = [folder / name for name in ("pair.mapped", "pair.request", "pair.notification")]
        (folder / "mapped-files.conf").write_text(f"{self.paths[0]} ring={ring} block={block}\n")
        (folder / "named-pipes.conf").write_text(f"{self.paths[1]} {self.paths[2]}\n")

    def left_behind(self):
        return [path.name for path in self.paths if path.exists()]


@pytest.fixture
def files():
    """Nothing of the pair may be left at the end."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir=folder) as name:
        made = PairFiles(pathlib.Path(name))
        yield made
        assert made.left_behind() == []


@pytest.fixture
def open_pair(files):
    """Opens the rank's side and attaches a task: (supply, task). Both end with the test."""
    opened = []

    def open_both(timeout=30, **options):
        rank = supply.open(files.folder, 0, timeout=timeout, **options)
        task = Task(*files.paths)
        opened.append((rank, task))
        return rank, task

    yield open_both
    for rank, task in opened:
        rank.abort("the test has ended")
        task.leave()


@pytest.fixture
def pair(open_pair):
    return open_pair()
