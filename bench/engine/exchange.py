"""Pairs in a DataFrame, grouped or sorted by key: Spark's own shuffle and ranks that exchange, in turn."""

import contextlib
import tempfile
from typing import NamedTuple

from engine import machine, pairs, quiet
from engine.data import PARTITION_BYTES
from engine.figures import Table, size_text, spread, spread_text
from engine.machine import BenchError
from engine.spark import Spark

RANKS = 2
VALUE_BYTES = 1000
RING, BLOCK = 16 << 20, 2 << 20
WORD = 1 << 64
# Of Spark's shuffle files.
SHUFFLE_FOLDER = "/dev/shm"
# Spark's memory for each byte of pairs: they are cached, and a shuffle needs some of it at a time.
HEAP_FACTOR = 6
# Beside the heap: shuffle files in memory, and what ranks that sort receive.
MEMORY_FACTOR = HEAP_FACTOR + 2


class Kind(NamedTuple):
    """name: of Spark's own benchmark. key: of its figures. way: of ShuffleKeyed. exchange: of bench-exchange."""

    name: str
    key: str
    way: str
    exchange: str


GROUP = Kind("GroupByTest", "groupby", "group", "groups")
SORT = Kind("SortByTest", "sortby", "sort", "sorted")
KINDS = (GROUP, SORT)
SPARK, OURS = "Spark's shuffle", "ranks that exchange"
# Of bench-exchange: what an exchange of all costs against none. The bytes of a value, by the name in the figure.
COSTS = {"192k": 192 << 10, "784": 784}
PLAIN, COPIED, ALL = "plain", "copied", "all"


def measure(total_bytes, rounds, warm_up, timeout, results):
    """Adds a table and the ratio of each kind."""
    with started(total_bytes) as spark:
        partitions = max(2 * RANKS, total_bytes // PARTITION_BYTES)
        source = spark.run("make_keyed", total_bytes=total_bytes, value_bytes=VALUE_BYTES, partitions=partitions)
        for kind in KINDS:

            def one_round(number, kind=kind):
                ways = {
                    SPARK: lambda: shuffled(spark, kind, source, partitions, verify=number == 0),
                    OURS: lambda: exchanged(spark, kind, source, timeout),
                }
                one = {way: run() for way, run in quiet.turns(ways.items(), number)}
                for way, measured in one.items():
                    results.case({"kind": kind.name, "way": way, "round": number}, measured)
                return one

            # The first round, which does not count, is verified.
            add(kind, source, quiet.rounds(max(1, warm_up), rounds, one_round), results)
        measure_costs(spark, total_bytes, rounds, warm_up, timeout, results)


def measure_costs(spark, total_bytes, rounds, warm_up, timeout, results):
    """The rows a second of ranks that exchange all, as a part of those without an exchange."""
    table = Table("An exchange of all rows, as a part of the rows a second without one", ["value", ALL, "copies alone"])
    partitions = max(2 * RANKS, total_bytes // PARTITION_BYTES)
    for name, value_bytes in COSTS.items():
        source = spark.run("make_keyed", total_bytes=total_bytes, value_bytes=value_bytes, partitions=partitions)

        def one_round(number, source=source, name=name):
            ways = quiet.turns((PLAIN, COPIED, ALL), number)
            one = {way: exchanged(spark, GROUP._replace(exchange=way), source, timeout) for way in ways}
            for way, measured in one.items():
                results.case({"value": name, "way": way, "round": number}, measured)
            return one

        measured = quiet.rounds(max(1, warm_up), rounds, one_round)
        kept = {way: spread([one[PLAIN]["seconds"] / one[way]["seconds"] for one in measured]) for way in (COPIED, ALL)}
        results.figure(f"exchange_all_{name}", {"ratio": kept[ALL], "disturbed": measured.disturbed})
        table.add(size_text(value_bytes), spread_text(kept[ALL]), spread_text(kept[COPIED]))
    results.table(table)


@contextlib.contextmanager
def started(total_bytes):
    """Spark with its shuffle at its best: files in memory without compression, which it reads without a network."""
    if machine.available_memory() < MEMORY_FACTOR * total_bytes:
        raise BenchError(
            f"{size_text(total_bytes)} of pairs need {MEMORY_FACTOR} times as much free memory: give fewer --bytes"
        )
    with tempfile.TemporaryDirectory(prefix="supply-bench-shuffle-", dir=SHUFFLE_FOLDER) as folder:
        conf = {
            "spark.local.dir": folder,
            "spark.shuffle.compress": "false",
            # So that a shuffle is one job with one stage that reads.
            "spark.sql.adaptive.enabled": "false",
        }
        with Spark(RANKS, max(2 << 30, HEAP_FACTOR * total_bytes), conf) as spark:
            yield spark


def shuffled(spark, kind, source, reducers, verify):
    """One job of Spark, with as many partitions after the shuffle as before it."""
    answer = spark.run("shuffle_keyed", way=kind.way, reducers=reducers, verify=verify)
    tally = answer["tally"]
    wrong = compared(source, {"elements": answer["count"]})
    if tally:
        wrong += compared(source, tally)
        wrong += ["the keys are not in order"] if kind is SORT and not tally["in_order"] else []
    return {"seconds": answer["nanos"] / 1e9, "wrong": wrong}


def exchanged(spark, kind, source, timeout):
    """One run of ranks, from the beginning of Spark's write until the last rank has read its last element."""
    with (
        pairs.config_files(RANKS, RING, BLOCK) as configs,
        pairs.started(configs, pairs.exchanging(RANKS, kind.exchange), timeout) as (ranks,),
    ):
        ranks.answer()
        start = spark.run("supply_keyed", ranks=RANKS, timeout=timeout, **configs)["start"]
        received = ranks.end()
    tally = together(received, kind)
    if kind.exchange in (PLAIN, COPIED, ALL):
        del tally["groups"]  # which they do not count
    return {
        "seconds": (max(rank["end"] for rank in received) - start) / 1e9,
        "ranks": received,
        "wrong": compared(source, tally) + (out_of_order(received) if kind is SORT else []),
    }


def together(ranks, kind):
    """The tally of all ranks. A key on two ranks counts twice, unless its rows are sorted: then ranks may divide it."""
    tally = {key: sum(rank[key] for rank in ranks) % WORD for key in ("elements", "groups", "key_sum", "bound")}
    filled = [rank for rank in ranks if rank["elements"]]
    if kind is SORT:
        tally["groups"] -= sum(rank["first_key"] == before["last_key"] for before, rank in zip(filled, filled[1:]))
    return tally


def compared(source, tally):
    """A line for each sum that is not the source's."""
    return [
        f"{key} {tally[key]}, the source has {source[key]}"
        for key in ("elements", "groups", "key_sum", "bound")
        if key in tally and tally[key] != source[key]
    ]


def out_of_order(ranks):
    """A line for each place at which the keys of the ranks, one rank after the other, are not in order."""
    lines = [
        f"rank {i}: {rank['descents']} keys below the key before" for i, rank in enumerate(ranks) if rank["descents"]
    ]
    filled = [(i, rank) for i, rank in enumerate(ranks) if rank["elements"]]
    lines += [
        f"rank {i} begins with key {rank['first_key']}, the rank before ends with {before['last_key']}"
        for (_, before), (i, rank) in zip(filled, filled[1:])
        if rank["first_key"] < before["last_key"]
    ]
    return lines


def add(kind, source, rounds, results):
    """Adds the table and the ratio."""
    theirs, ours = ([one[way]["seconds"] for one in rounds] for way in (SPARK, OURS))
    ratio = spread([a / b for a, b in zip(theirs, ours)])
    results.figure(f"{kind.key}_ratio", {"ratio": ratio, "disturbed": rounds.disturbed})
    title = (
        f"{kind.name}: {source['elements']} pairs of {VALUE_BYTES} B in Spark's memory, {RANKS} ranks, median (min–max)"
    )
    table = Table(title, ["way", "seconds", "Spark / ranks"])
    table.add(SPARK, spread_text(spread(theirs)), spread_text(ratio))
    table.add(OURS, spread_text(spread(ours)), "–")
    results.table(table)
