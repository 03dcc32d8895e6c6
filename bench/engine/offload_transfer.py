"""How fast ranks.matrix sends rows, beside rows over sockets, and beside the cycle."""

from engine import benchmark, cycle, data, offload
from engine.figures import Table, spread, spread_text
from engine.spark import Spark

ROWS, COLUMNS = 200_000, 500
ROW_BYTES = 8 * COLUMNS
PARTITIONS = 8
HEAP = 3 << 30
SOCKET = "socket"


def case(divided):
    return offload.sending(ROWS // divided, COLUMNS)


def sent(driver, cases, rounds, warm_up, results):
    """The case and its figures: ranks.matrix, from the call to the handle, and the sockets, in turn. None: no case."""
    measured = list(offload.measure(driver, cases, rounds, warm_up, results))
    return measured[0] if measured else None


def compare(options, sent_case, results):
    """Adds the table, and returns GB/s of ranks.matrix. The bound is the cycle: it moves byte arrays and keeps nothing.

    sent_case: of sent(). Elements are tuples, not the Supplier's batches of an LMDB: a row is an object, too.
    """
    rounds = benchmark.changed(options, repetitions=min(options.repetitions, 5), warm_up=2)
    with Spark(tasks=offload.RANKS, heap=HEAP) as spark:
        source = data.generate(spark, ROW_BYTES, options.bytes // 4, PARTITIONS, batches=False)
        bound = cycle.run(spark, source, offload.RANKS, options.ring, options.block, rounds)
    results.case({"way": "cycle"}, bound)
    sending, figures = sent_case
    size = sending.rows * ROW_BYTES

    def gb_s(way):
        return spread([size / 1e9 / seconds for seconds in figures[way]["s"]["values"]])

    ours = gb_s(offload.OURS)
    table = Table(f"Sending rows of {COLUMNS} doubles to {offload.RANKS} ranks", ["way", "GB/s"], {"x": 0, "bars": [1]})
    table.add("ranks.matrix, the whole call", spread_text(ours))
    table.add("a socket, one write for each row", spread_text(gb_s(SOCKET)))
    table.add("the cycle", spread_text(bound["cycle_gb_s"]))
    results.table(table)
    results.figure("offload_transfer_vs_socket", figures[SOCKET])
    others = figures[SOCKET]["others"] + bound["others"]
    results.ratio_of_medians("offload_transfer_vs_cycle", ours, bound["cycle_gb_s"], others)
    return ours
