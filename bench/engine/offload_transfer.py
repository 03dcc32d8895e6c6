"""How fast ranks.matrix sends rows, beside the cycle and beside a socket with one write for each row."""

import argparse
import contextlib

from engine import alternatives, cycle, data, offload
from engine.figures import Table, spread, spread_text
from engine.spark import Spark

ROWS, COLUMNS = 200_000, 500
ROW_BYTES = 8 * COLUMNS
PARTITIONS = 8
HEAP = 3 << 30
SOCKET = "tcp-rows"


def sent(driver, rounds, warm_up, divided, results):
    """GB/s of ranks.matrix, from the call to the handle."""
    case = offload.sending(ROWS // divided, COLUMNS)
    [(_, figures)] = offload.measure(driver, [case], rounds, warm_up, results)
    return spread([case.rows * ROW_BYTES / 1e9 / seconds for seconds in figures[offload.OURS]["s"]["values"]])


def compare(options, sent_gb_s, results):
    """Adds the table. The cycle and the socket have elements of a row's bytes, and one task for each rank, too.

    sent_gb_s: of sent(). Elements are tuples, not the Supplier's batches of an LMDB: a row is an object, too.
    """
    rounds = argparse.Namespace(**{**vars(options), "repetitions": min(options.repetitions, 5), "warm_up": 2})
    with Spark(tasks=offload.RANKS, heap=HEAP) as spark, contextlib.ExitStack() as consumers:
        source = data.generate(spark, ROW_BYTES, options.bytes // 4, PARTITIONS, batches=False)
        started = [
            consumers.enter_context(alternatives.consumer(SOCKET, options.timeout)) for _ in range(offload.RANKS)
        ]
        words = [of_consumer for _, of_consumer in started]
        figures = cycle.run(spark, source, offload.RANKS, options.ring, options.block, rounds, baselines=words)
        figures["wrong"] += cycle.check_received(source, [consumer.end() for consumer, _ in started])
    results.case({"way": SOCKET}, figures)
    table = Table(f"Sending rows of {COLUMNS} doubles to {offload.RANKS} ranks", ["way", "GB/s"], {"x": 0, "bars": [1]})
    table.add("ranks.matrix, the whole call", spread_text(sent_gb_s))
    table.add("the cycle", spread_text(figures["cycle_gb_s"]))
    table.add("a socket, one write for each row", spread_text(figures["baseline_gb_s"]))
    results.table(table)
    median = sent_gb_s["median"]
    results.summary["offload_transfer_vs_socket"] = median / figures["baseline_gb_s"]["median"]
    results.summary["offload_transfer_vs_cycle"] = median / figures["cycle_gb_s"]["median"]
