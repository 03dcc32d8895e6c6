"""Every row of docs/FAILURES.md names an existing test."""

import re

import pytest

from places import LAUNCH, ROOT

ROWS = [
    line
    for line in (ROOT / "docs" / "FAILURES.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| what happens")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_a_test(row):
    file, _, test = re.fullmatch(r"`([^`]+)`", row.split("|")[-2].strip()).group(1).partition("::")
    if file.endswith("Suite"):
        assert list((ROOT / "spark-supplier" / "src" / "test").rglob(f"{file}.scala"))
        return
    path = (ROOT if file.startswith("mpi-client/") else LAUNCH / "tests") / file
    assert path.is_file()
    assert not test or f"\ndef {test}(" in path.read_text()
