"""How fast ranks.matrix sends rows, beside the cycle."""

from engine import benchmark, cycle, data, offload
from engine.figures import Table, spread, spread_text
from engine.spark import Spark

ROWS, COLUMNS = 200_000, 500
ROW_BYTES = 8 * COLUMNS
PARTITIONS = 8
HEAP = 3 << 30


def sent(driver, divided, rounds, warm_up, results):
    """The case and its figures: ranks.matrix, from the call to the handle. divided: the rows, for a quick check."""
    [measured] = offload.measure(driver, [offload.sending(ROWS // divided, COLUMNS)], rounds, warm_up, results)
    return measured


def compare(options, sending, figures, results):
    """Adds the table. The bound is the cycle: it moves byte arrays and keeps nothing.

    Elements are tuples, not the Supplier's batches of an LMDB: a row is an object, too.
    """
    rounds = benchmark.changed(options, repetitions=min(options.repetitions, 5), warm_up=2)
    with Spark(tasks=offload.RANKS, heap=HEAP) as spark:
        source = data.generate(spark, ROW_BYTES, options.bytes // 4, PARTITIONS, batches=False)
        bound = cycle.run(spark, source, offload.RANKS, options.ring, options.block, rounds)
    results.case({"way": "cycle"}, bound)
    matrix = figures[offload.OURS]
    ours = spread([sending.rows * ROW_BYTES / 1e9 / seconds for seconds in matrix["s"]["values"]])
    table = Table(f"Sending rows of {COLUMNS} doubles to {offload.RANKS} ranks", ["way", "GB/s"], {"x": 0, "bars": [1]})
    table.add("ranks.matrix, the whole call", spread_text(ours))
    table.add("the cycle", spread_text(bound["cycle_gb_s"]))
    results.table(table)
    others = matrix["others"] + bound["others"]
    results.ratio_of_medians("offload_transfer_vs_cycle", ours, bound["cycle_gb_s"], others)
