"""Each message of docs/FAILURES.md stands in the product's sources and in a test."""

import itertools
import re

import pytest

from places import LAUNCH, ROOT

PRODUCT = ("spark-supplier/src/main", "mpi-client")
TESTS = ("spark-supplier/src/test", "mpi-client/tests", "mpi-client/python/tests", "launch/tests")
SUFFIXES = {".scala", ".c", ".h", ".cc", ".py"}
# Three words in a row that occur more often in the sources say nothing about a message.
OFTEN = 3
# Rows without words of ours, and messages whose tests do something else than compare their words. By their first words.
BY_NAME = {
    "a call fails in a child process": "mpi-client/tests/child_test.cc",
    "Spark's cause in one line": "launch/tests/test_spark_failures.py",
    "the data has 1 partition for 2 ranks": "ImbalanceSuite",
    "`SUPPLY_ERROR_ARGUMENT` for a position": "mpi-client/tests/exchange_position_test.cc",
    "another attempt of the same task": "faults/test_executors.py::test_an_executor_stalls_until_spark_kills_it",
    "… is no resident file": "ResidentFileSuite",
    "… has changed since Spark opened it": "mpi-client/tests/foreign_file_test.cc",
    "…/data.mdb was replaced while": "test_in_place_failures.py::test_a_file_that_is_replaced",
    "`Application application_…": "cluster/test_submission.py::test_the_application_master_is_killed",
    "Open MPI's `Read -1": "mpi-client/tests/supply_doctor_test.cc",
    "`RankError` with": "mpi-client/python/tests/test_supplier.py::"
    "test_an_exception_comes_back_with_rank_and_traceback",
    "Python worker exited": "mpi-client/python/tests/test_supplier_causes.py::test_a_python_function_of_the_data",
    "[… gloo …]": "mpi-client/python/tests/test_supplier_causes.py::"
    "test_a_collective_that_fails_on_every_rank_is_the_cause",
    "Spark's error class": "mpi-client/python/tests/test_supplier_causes.py::test_a_source_that_spark_cannot_read",
    "nothing: the program is gone": "mpi-client/python/tests/test_supplier_deaths.py::test_a_killed_driver",
    "… has no folder there": "test_read_only_root.py",
    "a `RunError` that names": "mpi-client/python/tests/test_supplier.py::test_a_node_with_too_little_memory_is_named",
    "the folder of checkpoints": "mpi-client/python/tests/test_restarts.py::test_a_state_that_cannot_be_saved",
    "… checkpoint-7 cannot be read": "CheckpointFolderSuite",
    "wrong rows beside predictions": "mpi-client/python/tests/test_frames.py",
    "the matrix needs": "mpi-client/python/tests/test_linalg.py::test_more_memory_than_the_node_has",
    "rank 1 has ended: its last words": "mpi-client/python/tests/test_ranks_end.py::test_a_killed_rank_is_told",
}


def text_of(folders):
    """All sources of these folders, with the parts of a string over several lines joined."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
    # The message must not be found in this file.
    paths = [path for path in paths if path.name != "test_failures_page.py"]
    text = "\n".join(path.read_text() for path in paths)
    return re.sub(r"\s+", " ", re.sub(r'"\s*(?:\+\s*)?[sfr]?"', "", text))


@pytest.fixture(scope="module")
def sources():
    product = [folder for folder in PRODUCT if folder != "mpi-client"]
    product += [
        f"mpi-client/{path.name}" for path in (ROOT / "mpi-client").iterdir() if path.name not in ("tests", "python")
    ]
    return text_of([*product, "mpi-client/python/src"]), text_of(TESTS)


def words_of(message):
    """Three words in a row, without what stands for a value."""
    for piece in re.split(r"…|'[^']*'|\d[\w.-]*|[(){}\[\]]", message):
        words = piece.split()
        yield from (" ".join(words[at : at + 3]).strip(",.;:") for at in range(len(words) - 2))


def first_cells(text):
    """Of each row of the tables, without their heads."""
    lines = text.splitlines()
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("| ") and not after.startswith("|--"):
            yield line.strip("|").split(" | ")[0].strip()


def messages_of(cell):
    """The messages of a cell, or the cell itself if it quotes none."""
    return [text for text in re.findall(r"`([^`]+)`", cell) if list(words_of(text))] or [cell]


def named(message):
    return next((test for words, test in BY_NAME.items() if message.startswith(words)), None)


def exists(name):
    file, _, test = name.partition("::")
    if file.endswith("Suite"):
        return any((ROOT / "spark-supplier" / "src" / "test").rglob(f"{file}.scala"))
    path = (ROOT if file.startswith(("mpi-client/", "launch/")) else LAUNCH / "tests") / file
    return path.is_file() and (not test or f"\ndef {test}(" in path.read_text())


def said(message, sources):
    """Whether words that only a few places of the product have are in the message, and in a test."""
    product, tests = sources
    own = [words for words in words_of(message) if 0 < product.count(words) <= OFTEN]
    return any(words in tests for words in own)


MESSAGES = sorted({each for cell in first_cells((ROOT / "docs/FAILURES.md").read_text()) for each in messages_of(cell)})


@pytest.mark.parametrize("message", MESSAGES, ids=lambda text: text[:60])
def test_a_message_has_a_source_and_a_test(message, sources):
    assert exists(named(message)) if named(message) else said(message, sources)


def test_the_page_has_messages():
    assert len(MESSAGES) > 50


@pytest.mark.parametrize("words", BY_NAME)
def test_what_is_named_is_on_the_page(words):
    assert any(message.startswith(words) for message in MESSAGES)


def test_what_nobody_says_or_tests_is_noticed(sources):
    assert said("no rank has opened it: …", sources)
    for message in ("no rank has shut it: …", "rank 0 has lost 120 notes of the song", "of the same", "…"):
        assert not said(message, sources)
    for name in ("NoSuchSuite", "test_no_such.py", "test_resident.py::test_no_such"):
        assert not exists(name)
