"""The place of each row."""

import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "release")]

from cell import Cell
from installing import RELEASE
from provision import NotAvailable


@pytest.fixture
def cell(neighbour, tmp_path):
    """The place of the row, in which nothing is installed."""
    if not (RELEASE / "SHA256SUMS").is_file():
        pytest.fail(f"there is no release in {RELEASE}: run 'make release'")
    try:
        return Cell(neighbour, RELEASE, tmp_path)
    except NotAvailable as reason:
        pytest.skip(str(reason))
