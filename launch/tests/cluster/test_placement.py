"""Tasks and ranks meet on their node."""

import re

import pytest

import databases
from supplier import SupplierFailure, rows


def test_every_task_runs_on_its_ranks_node(supplier, make_run, database):
    run = make_run(1, 3)
    run.start()
    supplied = run.start_supplier(supplier, database, "--epochs", 2)
    table = run.ends_well(supplied, databases.expected_lines(database, 2))
    assert [row["host"] for row in rows(table)] == ["node-1", "node-2", "node-2", "node-2"]


def test_too_few_cores_on_a_node(supplier, make_run, database):
    run = make_run(1, 5, timeout=4)
    with pytest.raises(SupplierFailure, match=re.escape("4 of 6 ranks have a slot: node-2 offers 3 cores, needs 5")):
        run.start_supplier(supplier, database).result()


@pytest.mark.long
def test_a_node_without_an_executor(supplier, make_run, database):
    run = make_run(1, 1, timeout=4)
    run.hosts.write_text("node-1\nnode-9\n")
    with pytest.raises(SupplierFailure, match=re.escape("1 of 2 ranks have a slot: node-9 offers 0 cores, needs 1")):
        run.start_supplier(supplier, database).result()


def test_mapped_files_that_do_not_fit_into_the_container(supplier, make_run, database):
    run = make_run(1, 1, ring="512MiB", timeout=4)
    with pytest.raises(
        SupplierFailure, match=re.escape("spark.executor.memoryOverhead is 768 MiB") + ".*set it to 961m"
    ):
        run.start_supplier(supplier, database).result()
