"""The same on two nodes, between which `tc` limits what each sends."""

import subprocess
import sys

from engine import exchange, mpi_ranks, pairs
from engine.spark import Spark

NODES = exchange.RANKS
RATE = "10gbit"
TOTAL_BYTES = 512 << 20
ROUNDS, WARM_UP = 3, 1
DRIVER_HEAP, EXECUTOR_HEAP = 2 << 30, 4 << 30
OVERHEAD = 1 << 30


def why_not():
    """Why this machine cannot have such nodes; empty if it can."""
    limit = f"tc qdisc add dev lo root tbf rate {RATE} {pairs.LIMIT}"
    why = pairs.why_not()
    if not why and subprocess.run(["unshare", "--net", *limit.split()], capture_output=True).returncode != 0:
        why = "this machine's kernel has no token bucket (tc, sch_tbf)"
    return why


def measure(options, rounds, results):
    why = why_not()
    if why:
        print(f"bench/exchange: two nodes skipped: {why}", file=sys.stderr)
        return
    with pairs.Cluster(NODES) as cluster, started(cluster) as spark:

        def opened(kind, timeout):
            words = exchange.arguments(kind)
            return mpi_ranks.on_nodes(cluster, exchange.RING, exchange.BLOCK, "bench-exchange", *words, timeout=timeout)

        source = exchange.make_pairs(spark, TOTAL_BYTES, cluster.nodes)
        cluster.limit(RATE)
        where = f"two nodes, {RATE}/s"
        for kind in exchange.KINDS:
            measured = exchange.compare(
                spark, kind, source, min(rounds, ROUNDS), WARM_UP, options.timeout, results, opened, where
            )
            results.table(exchange.table(kind, source, f"{where}, no compression", measured))
            exchange.summarize(kind, measured, results, "_10g")


def started(cluster):
    """An executor with one core on each node. Heaps hold the pairs twice, and what a shuffle needs."""
    conf = {
        **cluster.settings(NODES, 1, OVERHEAD),
        "spark.executor.memory": f"{EXECUTOR_HEAP >> 20}m",
        "spark.shuffle.compress": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    return Spark(1, DRIVER_HEAP, conf=conf, cluster=cluster)
