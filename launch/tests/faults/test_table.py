"""Every row of docs/FAILURES.md, and of docs/design/failures.md, names existing tests."""

import itertools
import re

import pytest

from places import LAUNCH, ROOT


def rows(page):
    lines = (ROOT / "docs" / page).read_text().splitlines()
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("| ") and not after.startswith("|--"):
            yield line


ROWS = [*rows("FAILURES.md"), *rows("design/failures.md")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_tests(row):
    names = row.split("|")[-2].strip()
    assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", names)
    for name in re.findall(r"`([^`]+)`", names):
        file, _, test = name.partition("::")
        if file.endswith("Suite"):
            assert list((ROOT / "spark-supplier" / "src" / "test").rglob(f"{file}.scala"))
            continue
        path = (ROOT if file.startswith("mpi-client/") else LAUNCH / "tests") / file
        assert path.is_file()
        assert not test or f"\ndef {test}(" in path.read_text()
