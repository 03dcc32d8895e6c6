"""Executors die while the first epoch is written into resident files (--resident-folder), and in later epochs."""

import pytest

from fail_point import RESIDENT_FILE_STEPS, is_gone
from waiting import wait_until

EPOCHS = 4
LONG = [("F1", "kill"), ("F3", "kill"), *((step, "throw") for step in RESIDENT_FILE_STEPS)]


@pytest.fixture
def start_resident(make_pairs, start_run, tmp_path):
    """Two ranks of some thirty blocks an epoch, and rings of few slots."""
    folder = tmp_path / "resident"

    def start(*options, epochs=EPOCHS):
        return start_run(
            "--resident-folder", folder, *options, pairs=make_pairs(2, ring="32KiB", block="4KiB"), epochs=epochs
        )

    yield start
    # Nothing is left by a run that succeeds, whoever died in it.
    assert [file.name for file in folder.iterdir() if not file.name.endswith(".kept")] == []


@pytest.mark.parametrize(
    ("step", "action"), [("F2", "kill"), *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)]
)
def test_an_executor_dies_while_it_writes_the_file(start_resident, fault, step, action):
    point = fault(step, action, after=7 if step == "F2" else 0)
    run = start_resident()
    taken = point.taken()
    if action == "kill":
        wait_until(lambda: is_gone(taken))
    run.ends_well()


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.long) for step in ("P1", "P2", "P4")] + ["P3"])
def test_an_executor_is_killed_in_a_later_epoch(start_resident, fault, step):
    # If one executor feeds both ranks, one rank has had at least half of these: two epochs, far from all.
    point = fault(step, "kill", after=150)
    run = start_resident(epochs=20)
    killed = point.taken()
    assert max(run.published(rank) for rank in range(2)) >= 74
    wait_until(lambda: is_gone(killed))
    run.ends_well()


@pytest.mark.long
@pytest.mark.parametrize("step", RESIDENT_FILE_STEPS)
def test_an_executor_dies_while_it_writes_a_file_to_keep(start_resident, fault, step):
    point = fault(step, "kill", after=7 if step == "F2" else 0)
    run = start_resident("--keep")
    point.taken()
    run.ends_well()
    start_resident("--keep").ends_well()


def test_a_run_that_fails_removes_its_files(start_run, make_pairs, tmp_path):
    folder = tmp_path / "resident"
    run = start_run("--resident-folder", folder, pairs=make_pairs(2, ring="32KiB", block="4KiB"), endless=True)
    for local_rank in run.ranks:
        run.wait_for_blocks(60, local_rank)
    run.ranks[0].process.terminate()
    run.fails()
    assert run.finish_rank(1) == 1
    wait_until(lambda: list(folder.iterdir()) == [])
