"""Ranks on a node without pairs read what a feeder sends from the node with Spark's tasks."""

import signal

import pytest

import databases
from places import PROGRAMS
from supplier import SupplierFailure, rows
from waiting import wait_until

REMOTE_CAT = PROGRAMS / "remote-cat"


@pytest.fixture
def start_fed(tmp_path):
    """Starts the ranks on the second node. Only the first one has pairs."""

    def start(run, ranks):
        trainers = tmp_path / "trainers"
        trainers.write_text(f"node-2 slots={ranks}\n")
        run.start(program=REMOTE_CAT, launch_options=["--program-hosts", trainers])

    return start


def finish(run):
    """The lines of the ranks, and those of the feeders."""
    _, error = run.process.communicate(timeout=120)
    assert run.process.returncode == 0, error
    return run.lines(), [line for line in error.splitlines() if line.startswith("supply-feeder: ")]


@pytest.mark.long
def test_every_element_reaches_a_rank_on_the_other_node(supplier, make_run, start_fed, database):
    run = make_run(3, 0)
    start_fed(run, 3)
    supplied = run.start_supplier(supplier, database, "--epochs", 2)
    lines, fed = finish(run)
    assert lines == databases.expected_lines(database, 2)
    assert len(fed) == 1
    assert fed[0].startswith("supply-feeder: node node-1 sent 800 elements")
    assert [row["host"] for row in rows(supplied.result())] == ["node-1"] * 3


@pytest.mark.long
def test_a_feeder_that_dies_ends_both_sides(cluster, supplier, make_run, start_fed, database):
    run = make_run(1, 0)
    start_fed(run, 1)
    supplied = run.start_supplier(supplier, database, "--epochs", 1000000)
    wait_until(run.lines)
    cluster.signal("node-1", signal.SIGKILL, "supply-feeder")
    with pytest.raises(SupplierFailure, match="its rank .process .* ended before it had taken all its data"):
        supplied.result()
    _, error = run.process.communicate(timeout=120)
    assert run.process.returncode != 0
    assert "node-1" in error
    assert "signal 9" in error
    # As of a rank that was killed.
    cluster(
        "on", "node-1", f"{PROGRAMS}/supply-clean --mapped-files {run.mapped_files} --named-pipes {run.named_pipes}"
    )
