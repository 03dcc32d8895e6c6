"""docs/design/failure-tests.tsv names tests of each message of docs/FAILURES.md; so does docs/design/failures.md."""

import itertools
import re

import pytest

from places import LAUNCH, ROOT

DOCS = ROOT / "docs"


def rows(page):
    """The cells of each row of the page's tables, after the heading that it stands below."""
    section = ""
    lines = (DOCS / page).read_text().splitlines()
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("| ") and not after.startswith("|--"):
            yield section, *(cell.strip() for cell in line.strip("|").split("|"))


TABLE = [tuple(line.split("\t")) for line in (DOCS / "design/failure-tests.tsv").read_text().splitlines()[1:]]
CASES = [
    *((message, tests) for _, message, tests in TABLE),
    *((cells[1], cells[-1].replace("`", "")) for cells in rows("design/failures.md")),
]


def missing(names):
    """The first test of these that does not exist, or that is no name of a test."""
    for name in names.split(", "):
        file, _, test = name.partition("::")
        if file.endswith("Suite"):
            found = any((ROOT / "spark-supplier" / "src" / "test").rglob(f"{file}.scala"))
        else:
            path = (ROOT if file.startswith("mpi-client/") else LAUNCH / "tests") / file
            found = path.is_file() and (not test or f"\ndef {test}(" in path.read_text())
        if not re.fullmatch(r"[\w./:-]+", name) or not found:
            return name
    return None


@pytest.mark.parametrize("message, tests", CASES, ids=lambda cell: cell[:60])
def test_a_case_names_tests(message, tests):
    assert missing(tests) is None


def test_a_test_that_does_not_exist_is_noticed():
    for name in (
        "",
        "NoSuchSuite",
        "test_no_such.py",
        "faults/test_table.py::test_no_such",
        "StreamSuite, NoSuchSuite",
    ):
        assert missing(name) is not None


def test_the_page_has_no_message_without_tests():
    page = {(section, message) for section, message, *_ in rows("FAILURES.md")}
    assert page - {(section, message) for section, message, _ in TABLE} == set() and len(page) > 50
