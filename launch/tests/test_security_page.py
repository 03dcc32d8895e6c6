"""docs/design/security.md names a test for each refusal of docs/SECURITY.md, and each test that it names exists."""

import re

import pytest

from places import LAUNCH, ROOT

LINES = (ROOT / "docs" / "design" / "security.md").read_text().splitlines()
C_TESTS = "".join(path.read_text() for path in (ROOT / "mpi-client" / "tests").glob("*.cc"))
SUITES = {path.stem for path in (ROOT / "spark-supplier" / "src" / "test").rglob("*Suite.scala")}
PYTHON_TESTS = (LAUNCH / "tests", ROOT / "mpi-client" / "python" / "tests")
NAMES = sorted(
    set(re.findall(r"`(\w+Test(?:\.\w+)?|\w+Suite|[\w/]*\btest_\w+\.py(?:::\w+)?|mpi-client/fuzz)`", "\n".join(LINES)))
)


def rows():
    """The rows of the tables whose last column names tests, without their headings."""
    in_table = False
    for line in LINES:
        if not line.startswith("|"):
            in_table = False
        elif line.endswith("| tested by |"):
            in_table = True
        elif in_table and not line.startswith("|--"):
            yield line


def exists(name):
    if name.endswith("Suite"):
        return name in SUITES
    if ".py" in name:
        file, _, function = name.partition("::")
        found = [folder / file for folder in PYTHON_TESTS if (folder / file).is_file()]
        return any(re.search(rf"^def {function or 'test_.*'}\(", path.read_text(), re.MULTILINE) for path in found)
    if name == "mpi-client/fuzz":
        return (ROOT / name / "run").is_file()
    fixture, _, test = name.partition(".")
    return bool(re.search(rf"\bTEST(_F|_P)?\({fixture}, {test or '[A-Za-z0-9]+'}\)", C_TESTS))


@pytest.mark.parametrize("name", NAMES)
def test_a_test_exists(name):
    assert exists(name)


def test_a_test_that_does_not_exist_is_noticed():
    for name in ("UsersTest.NoSuchTest", "NoSuchTest", "NoSuchSuite", "test_hub.py::test_nothing", "test_no.py"):
        assert not exists(name)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_a_test(row):
    _, _, reach, *_, tests, _ = row.split("|")
    assert any(f"`{name}`" in tests for name in NAMES) or (not tests.strip() and reach.strip().startswith("everything"))
