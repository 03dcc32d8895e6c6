"""Rows that ranks write come back as a DataFrame. Ranks, executors and the processes between them are killed."""

import sys

from pyspark import cloudpickle

from soak.ground import RANKS, TIMEOUT
from soak.kills import kills

# Ranks do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
COUNT, BATCH = 20_000, 64
_LATEST_SECONDS = 3


def executors_killed_while_spark_reads(ground):
    """A rank's result outlives the rank, and every row of it arrives."""
    results = _run(ground)
    for _ in range(3):
        ground.kill(ground.chance.choice(sorted(ground.cluster.executors())))
        _check(ground, results)
    results.release()


def killed_while_ranks_write(ground):
    """Either there are all rows, or there is an error: never a table that lacks some."""
    from spark_supplier import RunError

    with kills(ground, 1, _LATEST_SECONDS, ground.cluster.executors):
        try:
            results = _run(ground)
        except RunError as error:
            assert str(error)
            return
    _check(ground, results)
    results.release()


def _write_scores(data):
    with data.results() as out:
        for batch in data:
            out.write({"id": batch["id"], "score": batch["x"] * 2})


def _run(ground):
    from spark_supplier import Rows, Supplier

    rows = ground.cluster.session.range(0, COUNT, 1, 8).selectExpr("id", "double(id) as x")
    supplier = Supplier(ranks=RANKS, folder=str(ground.memory), stall_timeout=TIMEOUT)
    schema = "id long not null, score double"
    return supplier.run(_write_scores, Rows(rows, batch_size=BATCH, uneven="keep"), results=schema)


def _check(ground, results):
    rows = results.rows.collect()
    received = {row["id"] for row in rows}
    ground.tally.elements += len(rows)
    ground.tally.lost += COUNT - len(received)
    ground.tally.duplicated += len(rows) - len(received)
    assert all(row["score"] == 2 * row["id"] for row in rows)
