"""GroupByTest and SortByTest: Spark's own shuffle and ranks that exchange, round by round in turn."""

import contextlib
import tempfile
from typing import NamedTuple

from engine import machine, mpi_ranks, quiet
from engine.data import PARTITION_BYTES
from engine.figures import Table, size_text, spread, spread_text
from engine.machine import BenchError
from engine.spark import Spark

RANKS = 2
VALUE_BYTES = 1000
# Bytes of a rank's window, and of its ring.
WINDOW, RING, BLOCK = 8 << 20, 16 << 20, 2 << 20
WORD = 1 << 64
# Of Spark's shuffle files.
SHUFFLE_FOLDER = "/dev/shm"
# Spark's memory for each byte of pairs: they are cached twice, and a shuffle needs some of it at a time.
HEAP_FACTOR = 6
# Beside the heap: shuffle files in memory, and what ranks that sort receive.
MEMORY_FACTOR = HEAP_FACTOR + 2


class Way(NamedTuple):
    """One of Spark's. name: in the table. word: of KeyedShuffle.scala. key: of its figures.

    counts: what its job answers; None: a tally. is_whole: it does what the ranks do, so that they compete.
    """

    name: str
    word: str
    key: str
    counts: str | None
    is_whole: bool = True


class Kind(NamedTuple):
    """name: of the papers' benchmark. key: of its figures. exchange: of bench-exchange."""

    name: str
    key: str
    ways: tuple
    exchange: str


GROUP = Kind(
    "GroupByTest",
    "groupby",
    (
        Way("Spark, RDD: groupByKey", "rdd group", "rdd", "groups"),
        Way("Spark, DataFrame: repartition, same sums", "frame group", "frame", None),
        Way("Spark, DataFrame: repartition alone", "frame move", "rows", "elements", is_whole=False),
    ),
    "groups",
)
SORT = Kind(
    "SortByTest",
    "sortby",
    (
        Way("Spark, RDD: sortByKey", "rdd sort", "rdd", "elements"),
        Way("Spark, DataFrame: sort", "frame sort", "frame", "elements"),
    ),
    "sorted",
)
KINDS = (GROUP, SORT)
# What the table says, and whether a DataFrame's writer supplies the ranks.
OURS = {"ranks, from the RDD": False, "ranks, from the DataFrame": True}


def measure(total_bytes, rounds, warm_up, timeout, results):
    """Adds a table and the ratios of each kind."""
    with started(total_bytes) as spark:
        source = make_pairs(spark, total_bytes)
        for kind in KINDS:
            figures = compare(spark, kind, source, rounds, warm_up, timeout, results)
            results.table(table(kind, source, figures))
            summarize(kind, figures, results)


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


def make_pairs(spark, total_bytes):
    """Makes the pairs in Spark's memory, as an RDD and as a DataFrame. Returns their tally."""
    partitions = max(2 * RANKS, total_bytes // PARTITION_BYTES)
    size = {"total_bytes": total_bytes, "value_bytes": VALUE_BYTES, "partitions": partitions}
    return {**spark.run("make_keyed", **size), "partitions": partitions}


def shuffled(spark, kind, way, source, verify):
    """One job of Spark, with as many partitions after the shuffle as before it."""
    answer = spark.run("shuffle_keyed", way=way.word, reducers=source["partitions"], verify=verify)
    wrong, tally = [], answer["tally"]
    if way.counts:
        wrong += compared(source, {way.counts: answer["count"]})
    if tally:
        wrong += compared(source, tally)
        wrong += ["the keys are not in order"] if kind is SORT and not tally["in_order"] else []
    return {
        "job_s": answer["nanos"] / 1e9,
        "read_s": answer["read_millis"] / 1e3,
        "read_bytes": answer["read_bytes"],
        "wrong": wrong,
    }


def exchanged(spark, kind, as_frame, source, timeout):
    """One run of ranks, from the beginning of Spark's write until the last rank has read its last element."""
    arguments = ["--exchange", kind.exchange, "--window", str(WINDOW)]
    with mpi_ranks.on_this_machine(RANKS, RING, BLOCK, "bench-exchange", *arguments, timeout=timeout) as (
        configs,
        ranks,
    ):
        supplied = spark.run("supply_keyed", ranks=RANKS, as_frame=as_frame, timeout=timeout, **configs)
        received = ranks.end()
    end = max(rank["ends"][-1] for rank in received)
    return {
        "job_s": (end - supplied["start"]) / 1e9,
        "ranks": received,
        "wrong": compared(source, together(received)) + (out_of_order(received) if kind is SORT else []),
    }


def together(ranks):
    """The tally of all ranks. A key on two ranks counts twice."""
    return {key: sum(rank[key] for rank in ranks) % WORD for key in ("elements", "groups", "key_sum", "bound")}


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


def compare(spark, kind, source, rounds, warm_up, timeout, results):
    """Measures all ways in turn. Returns the figures of each. The first round, which does not count, is verified."""

    def one_round(number):
        theirs = {way.name: shuffled(spark, kind, way, source, verify=number == 0) for way in kind.ways}
        ours = {name: exchanged(spark, kind, as_frame, source, timeout) for name, as_frame in OURS.items()}
        measured = {**theirs, **ours}
        for name, one in measured.items():
            results.case({"kind": kind.name, "way": name, "round": number}, one)
        return measured

    counted = quiet.rounds(max(1, warm_up), rounds, one_round)
    results.judged({"kind": kind.name, "warm_up": max(1, warm_up)}, counted)
    return figures_of(kind, counted)


def figures_of(kind, counted):
    """By way: seconds, and of Spark's ways how many times ours they are. Ours is the faster of our two ways."""
    names = [way.name for way in kind.ways]
    figures = {name: {"job_s": spread([one[name]["job_s"] for one in counted])} for name in (*names, *OURS)}
    ours = min(OURS, key=lambda name: figures[name]["job_s"]["median"])
    for name, of_way in figures.items():
        of_way["others"] = counted.others
        of_way["job_ratio"] = spread([one[name]["job_s"] / one[ours]["job_s"] for one in counted])
        if name in names:
            of_way["read_s"] = spread([one[name]["read_s"] for one in counted])
            of_way["ratio"] = spread([one[name]["read_s"] / one[ours]["job_s"] for one in counted])
    return figures


def summarize(kind, figures, results):
    """Adds the ratios of each of Spark's ways, and without its name those of the fastest that does what ranks do."""
    for ratio, seconds in (("ratio", "read_s"), ("job_ratio", "job_s")):
        for way in kind.ways:
            results.figure(f"{kind.key}_{way.key}_{ratio}", figures[way.name], ratio)
        competing = [figures[way.name] for way in kind.ways if way.is_whole]
        results.figure(f"{kind.key}_{ratio}", min(competing, key=lambda one: one[seconds]["median"]), ratio)


def table(kind, source, figures):
    title = (
        f"{kind.name}: {source['elements']} pairs of {VALUE_BYTES} B in Spark's memory, {RANKS} ranks, median (min–max)"
    )
    columns = ["way", "whole s", "read stage s", "whole / ranks' whole", "read stage / ranks' whole"]
    made = Table(title, columns, picture={"x": 0, "bars": [1]})
    for name, of_way in figures.items():
        has_stage = name not in OURS
        made.add(
            name,
            spread_text(of_way["job_s"]),
            spread_text(of_way["read_s"]) if has_stage else "–",
            spread_text(of_way["job_ratio"]),
            spread_text(of_way["ratio"]) if has_stage else "–",
        )
    return made
