"""Which side of a run failed first, and why: what launch/supply-run concludes from statuses and stderr."""

import pytest
from spark_supplier.launch import last_words


@pytest.fixture
def folder(tmp_path):
    """What Open MPI writes for each rank: rank 0 gave the reason, rank 1 complains that it was ended."""
    for rank, text in enumerate(["starting\rno memory\n", "ended by SIGTERM\n"]):
        of_rank = tmp_path / "1" / f"rank.{rank}"
        of_rank.mkdir(parents=True)
        (of_rank / "stderr").write_text(text)
    return tmp_path


LAUNCHER = ["-----", "Primary job terminated normally, but 1 process returned a non-zero exit code.", "-----"]


@pytest.mark.parametrize(
    "lines, status, words",
    [
        (["starting", "no memory", *LAUNCHER, "ended by SIGTERM"], 1, "no memory"),
        ([*LAUNCHER, "no memory", "ended by SIGTERM"], 1, "no memory"),
        ([*LAUNCHER, "ended by SIGTERM"], 137, "a rank was ended by SIGKILL"),
        ([*LAUNCHER, "ended by SIGTERM"], 165, "a rank was ended by signal 37"),
        ([*LAUNCHER, "no memory", "ended by SIGTERM"], 255, "no memory"),
        (["no memory", "[node:12] in the library"], 1, "no memory"),
        (LAUNCHER, 1, "no message on stderr"),
        (LAUNCHER, 255, "no message on stderr"),
    ],
    ids=[
        "before the launcher",
        "after the launcher",
        "a killed rank",
        "a real-time signal",
        "exit(-1)",
        "the library",
        "silence",
        "silence and exit(-1)",
    ],
)
def test_words_of_the_rank_that_failed_first(folder, lines, status, words):
    assert last_words.of_ranks(lines, last_words.StderrFiles(folder, may_trim=False), status) == words


def test_without_files_every_line_is_a_ranks():
    assert last_words.of_ranks(["a warning", "no memory", "Abort(1) on node 0: application"], None, 1) == "no memory"


FRAME = "-" * 74


def test_without_files_the_lines_in_frames_are_the_launchers():
    """As Open MPI 5 writes them."""
    launcher = [FRAME, "prterun detected that one or more processes exited with non-zero status,", FRAME]
    assert last_words.of_ranks(["no memory", *launcher, "ended by SIGTERM"], None, 1) == "no memory"
    assert last_words.of_ranks([*launcher, "ended by SIGTERM"], None, 137) == "a rank was ended by SIGKILL"
    assert last_words.of_ranks(launcher, None, 1) == "no message on stderr"


@pytest.mark.parametrize(
    "first, supplier, ranks, failed",
    [
        ("ranks", 0, 0, None),
        ("supplier", 0, 5, "ranks"),
        ("supplier", 3, 5, "ranks"),
        ("supplier", 1, 5, "supplier"),
        ("ranks", 1, 5, "supplier"),
        ("ranks", None, 5, "ranks"),
        ("ranks", None, 0, "supplier"),
    ],
)
def test_the_side_that_failed_first(first, supplier, ranks, failed):
    assert last_words.failed_side(first, {"supplier": supplier, "ranks": ranks}) == failed
