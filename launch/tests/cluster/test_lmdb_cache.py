"""LMDBs in HDFS: copies on the nodes that have ranks, or that compute a DataFrame."""

import collections
import types

import pytest

import databases
from supplier import SupplierFailure


def supply(supplier, run, remote, database, *options):
    run.start()
    run.ends_well(run.start_supplier(supplier, remote, *options), databases.expected_lines(database))


def test_only_nodes_with_ranks_fetch_and_only_once(cluster, supplier, make_run, database):
    remote = cluster.put(database)
    supply(supplier, make_run(2), remote, database)
    first = cluster.cached("node-1")
    assert len(first) == 1
    assert not cluster.cached("node-2")
    # The ranks of this run read the copies themselves.
    supply(supplier, make_run(2, 1), remote, database, "--partitions", 5, "--in-place")
    assert cluster.cached("node-1") == first
    assert len(cluster.cached("node-2")) == 1


def test_a_dataframe_of_an_lmdb_in_hdfs(cluster, supplier, make_run, tmp_path):
    database = databases.write(tmp_path / "frame", databases.numbered(300, seed=1))
    # Hadoop's own commands accept such a name, too.
    remote = cluster.put(database, "a frame of 100%")
    # Both nodes have executors, which share the partitions.
    supply(supplier, make_run(1, 1), remote, database)
    before = {node: cluster.cached(node) for node in cluster.NODES}
    cache = {"lmdb-cache": "/var/tmp/frames", "lmdb-cache-size": "1GiB"}
    copies = []
    for _ in range(2):
        rows = supplier.datums(remote, partitions=24, **cache)
        assert collections.Counter(
            databases.line(0, bytes(row.key), types.SimpleNamespace(**row.asDict())) for row in rows
        ) == databases.expected_lines(database)
        copies.append({node: cluster.cached(node) for node in cluster.NODES})
    assert copies[0] == copies[1]
    for node in cluster.NODES:
        added = copies[0][node].keys() - before[node].keys()
        assert [copy.parents[1].name for copy in added] == ["frames"]
        assert before[node].items() <= copies[0][node].items()


@pytest.mark.long
def test_a_file_that_has_changed_is_fetched_again(cluster, supplier, make_run, tmp_path):
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        database = databases.write(folder / "changing", databases.numbered(100, seed=seed))
        supply(supplier, make_run(1, 1), cluster.put(database), database)


@pytest.mark.long
def test_an_lmdb_that_is_not_there(supplier, make_run):
    run = make_run(1, 1, timeout=4)
    with pytest.raises(SupplierFailure, match="there is no LMDB at hdfs:///nowhere: no such file or directory"):
        run.start_supplier(supplier, "hdfs:///nowhere").result()
