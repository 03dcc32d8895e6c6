"""Executors that die on a cluster: YARN starts new ones."""

import shutil

import pytest

import databases
import headers
from supplier import SupplierFailure
from waiting import wait_until

EPOCHS = 3
# No rank has all its data before another rank's task fails.
ENDLESS = 1_000_000


@pytest.fixture
def no_new_executors(cluster):
    """On the second node Java ends at once."""
    java = shutil.which("java")
    cluster("on", "node-2", f"mount --bind /bin/false $(readlink -f {java})")
    yield
    cluster("on", "node-2", f"umount $(readlink -f {java})")


def start(supplier, run, database, epochs):
    """Starts a run whose ranks on the second node are stopped, so that it cannot end before the test checks it."""
    run.start()
    stopped = [run.pair("node-2", local_rank) for local_rank in range(run.slots[1])]
    wait_until(lambda: all(headers.read(pair, "version") for pair in stopped))
    run.signal("node-2", "STOP")
    return run.start_supplier(supplier, database, "--epochs", epochs)


def kill_executor(cluster, run, supplied):
    """Kills the executor of the second node when it feeds a rank."""
    process = wait_until(lambda: supplied.done() or headers.read(run.pair("node-2", 0), "task_pid"))
    assert not supplied.done(), supplied.result()
    cluster.signal("node-2", "KILL", process)


@pytest.mark.long
def test_an_executor_is_killed(cluster, supplier, make_run, database):
    run = make_run(1, 2)
    supplied = start(supplier, run, database, EPOCHS)
    kill_executor(cluster, run, supplied)
    # The other node has cores to spare, and the tasks do not wait for theirs (spark.locality.wait).
    wait_until(
        lambda: (
            supplied.done()
            or "landed on node-1, but its rank is on node-2: it is placed again (1 of 9)" in supplier.log.read_text()
        )
    )
    run.signal("node-2", "CONT")
    run.ends_well(supplied, databases.expected_lines(database, EPOCHS))


@pytest.mark.long
def test_a_node_loses_its_executor_for_good(cluster, supplier, make_run, database, no_new_executors):
    run = make_run(1, 1, timeout=15)
    supplied = start(supplier, run, database, ENDLESS)
    kill_executor(cluster, run, supplied)
    with pytest.raises(SupplierFailure, match="rank 1 landed on node-1, but its rank is on node-2, for the 10th time"):
        supplied.result()
    # mpirun ends the stopped rank, too.
    status, _, said = run.finish()
    assert status != 0
    assert any("the task of rank 1 landed on node-1" in line for line in said)


@pytest.mark.long
def test_the_next_run_gets_an_executor_on_that_node(supplier, make_run, database):
    run = make_run(1, 1)
    run.start()
    supplied = run.start_supplier(supplier, database)
    run.ends_well(supplied, databases.expected_lines(database))
