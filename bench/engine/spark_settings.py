"""Settings of Spark's own shuffle, one against the other: two executors on this machine, round by round in turn."""

import contextlib
import itertools
import os
import tempfile
from typing import NamedTuple

from engine import exchange, machine
from engine.exchange_settings import MEMORY
from engine.figures import Table, size_text, spread, spread_text
from engine.machine import BenchError
from engine.spark import Spark

EXECUTORS = 2
DRIVER_HEAP = 1 << 30
# An executor's heap for each byte of pairs: half of them, cached twice, and what a shuffle needs at a time.
HEAP_FACTOR = 4
LEAST_HEAP = 1 << 30
# Two clusters at a time, with the shuffle files of one of them in memory.
MEMORY_FACTOR = 2 * EXECUTORS * HEAP_FACTOR + 2
WARM_UP = 1
REDUCERS = (16, 256, 2048)
ADAPTIVE = exchange.Way("Spark, DataFrame: repartition, adaptive", "frame adaptive", "rows", "elements", is_whole=False)
WAYS = {"group": exchange.GROUP.ways[0], "repartition": exchange.GROUP.ways[2], "adaptive": ADAPTIVE}
GOOD = {
    "spark.shuffle.readHostLocalDisk": "true",
    "spark.shuffle.compress": "false",
    # So that the number of partitions is the one that is asked for.
    "spark.sql.adaptive.enabled": "false",
}


class Setting(NamedTuple):
    """changed: settings. folder: of the shuffle's files. repeats: of the pairs' words (MakeKeyed)."""

    key: str
    name: str
    changed: dict
    folder: str = MEMORY
    repeats: int = 1
    ways: tuple = ("group", "repartition")
    reducers: tuple = REDUCERS[:1]


def settings():
    lz4 = {"spark.shuffle.compress": "true", "spark.io.compression.codec": "lz4"}
    made = [
        Setting("lz4_random", "lz4, random bytes", lz4),
        Setting("lz4_repeated", "lz4, each word 8 times", lz4, repeats=8),
    ]
    disk = tempfile.gettempdir()
    if os.stat(disk).st_dev != os.stat(MEMORY).st_dev:
        made.append(Setting("disk", f"files on a disk instead of {MEMORY}", {}, folder=disk))
    over_tcp = {"spark.shuffle.readHostLocalDisk": "false"}
    return [
        *made,
        Setting(
            "host_local_off", "readHostLocalDisk=false", over_tcp, ways=("repartition", "adaptive"), reducers=REDUCERS
        ),
    ]


def measure(options, results):
    total_bytes = options.bytes // 2
    if machine.available_memory() < MEMORY_FACTOR * total_bytes:
        raise BenchError(f"{size_text(total_bytes)} need {MEMORY_FACTOR} times as much free memory: give fewer --bytes")
    for setting in settings():
        rounds = _rounds(setting, total_bytes, options, results)
        results.table(_table(setting, total_bytes, rounds, results))


def _rounds(setting, total_bytes, options, results):
    """Seconds by way, reducers and side: with the good settings, and with one of them changed."""
    good, changed = (GOOD, MEMORY), ({**GOOD, **setting.changed}, setting.folder)
    with _started(*good, total_bytes) as first, _started(*changed, total_bytes) as second:
        sides = {"good": first, "changed": second}
        sources = {side: exchange.make_pairs(sides[side], total_bytes, repeats=setting.repeats) for side in sides}

        def one_round(number):
            measured = {}
            for word, reducers in itertools.product(setting.ways, setting.reducers):
                # Each side is the first one in every second round.
                for side in sorted(sides, reverse=number % 2 == 0):
                    one = exchange.shuffled(
                        sides[side], exchange.GROUP, WAYS[word], sources[side], verify=number == 0, reducers=reducers
                    )
                    about = {"setting": setting.key, "side": side, "way": word, "reducers": reducers, "round": number}
                    results.case(about, one)
                    measured[word, reducers, side] = one
            return measured

        warm_up = min(options.warm_up, WARM_UP)
        return [one_round(number) for number in range(warm_up + options.repetitions)][warm_up:]


def _table(setting, total_bytes, rounds, results):
    """The jobs of both sides, and on each side those with many partitions against those with few."""
    table = Table(
        f"{setting.name}: {size_text(total_bytes)} of pairs, {EXECUTORS} executors, median (min–max)",
        ["way", "compared", "job s", "job s", "ratio of jobs", "ratio of read stages"],
    )

    def add(key, compared, top, bottom):
        jobs, reads = ([one[top][each] / one[bottom][each] for one in rounds] for each in ("job_s", "read_s"))
        seconds = [spread_text(spread([one[side]["job_s"] for one in rounds])) for side in (top, bottom)]
        table.add(top[0], compared, *seconds, spread_text(spread(jobs)), spread_text(spread(reads)))
        results.figure(key, {"ratio": spread(jobs)})

    for word, reducers in itertools.product(setting.ways, setting.reducers):
        compared = f"changed / good, {reducers} partitions"
        add(f"{setting.key}_{word}_{reducers}", compared, (word, reducers, "changed"), (word, reducers, "good"))
    few = setting.reducers[0]
    for word, reducers, side in itertools.product(setting.ways, setting.reducers[1:], ("good", "changed")):
        key = f"partitions_{reducers}_{word}_{side}"
        add(key, f"{reducers} / {few} partitions, {side}", (word, reducers, side), (word, few, side))
    return table


@contextlib.contextmanager
def _started(conf, folder, total_bytes):
    with tempfile.TemporaryDirectory(prefix="supply-bench-shuffle-", dir=folder) as files:
        heap = max(LEAST_HEAP, HEAP_FACTOR * total_bytes)
        with Spark(EXECUTORS, DRIVER_HEAP, {"spark.local.dir": files, **conf}, executor_heap=heap) as spark:
            yield spark
