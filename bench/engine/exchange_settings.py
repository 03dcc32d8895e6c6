"""Spark's own shuffle at its best: in memory or on a disk, compressed or not. The fastest setting is kept."""

import contextlib
import os
import tempfile
from typing import NamedTuple

from engine import exchange, machine
from engine.figures import Table, size_text, spread, spread_text
from engine.machine import BenchError
from engine.spark import Spark

MEMORY = "/dev/shm"
# Spark's memory for each byte of pairs: they are cached twice, and a shuffle needs some of it at a time.
HEAP_FACTOR = 6
# Beside the heap: shuffle files in memory, and what ranks that sort receive.
MEMORY_FACTOR = HEAP_FACTOR + 2


class Setting(NamedTuple):
    """folder: of the shuffle's files. codec: None does not compress."""

    folder: str
    codec: str

    def text(self):
        codec = self.codec or "no compression"
        return f"{MEMORY if self.folder == MEMORY else 'a disk'} and {codec}"


UNCOMPRESSED = Setting(MEMORY, None)


def settings():
    folders = [MEMORY]
    if os.stat(tempfile.gettempdir()).st_dev != os.stat(MEMORY).st_dev:
        folders.append(tempfile.gettempdir())
    return [Setting(folder, codec) for folder in folders for codec in (None, "lz4")]


@contextlib.contextmanager
def started(setting, total_bytes):
    """Spark with that setting. It reads all shuffles from its own files, without a network."""
    if machine.available_memory() < MEMORY_FACTOR * total_bytes:
        raise BenchError(
            f"{size_text(total_bytes)} of pairs need {MEMORY_FACTOR} times as much free memory: give fewer --bytes"
        )
    with tempfile.TemporaryDirectory(prefix="supply-bench-shuffle-", dir=setting.folder) as folder:
        conf = {
            "spark.local.dir": folder,
            "spark.shuffle.compress": str(setting.codec is not None).lower(),
            "spark.io.compression.codec": setting.codec or "lz4",
            # So that a shuffle is one job with one stage that reads.
            "spark.sql.adaptive.enabled": "false",
        }
        with Spark(exchange.RANKS, max(2 << 30, HEAP_FACTOR * total_bytes), conf) as spark:
            yield spark


def best(total_bytes, rounds, kinds, results):
    """The setting whose read stages are the shortest, summed over the kinds with the faster way of each."""
    measured = {setting: _measured(setting, total_bytes, rounds, kinds, results) for setting in settings()}
    table = Table("Spark's own settings, median (min–max)", ["way", "shuffle files", "whole s", "read stage s"])
    for kind in kinds:
        for way in kind.ways:
            for setting, seconds in measured.items():
                table.add(
                    way.name, setting.text(), *(spread_text(seconds[way.word][key]) for key in ("job_s", "read_s"))
                )
    results.table(table)
    return min(measured, key=lambda setting: read_seconds(measured[setting], kinds))


def _measured(setting, total_bytes, rounds, kinds, results):
    """Seconds of each way. The first round does not count."""
    runs = {way.word: [] for kind in kinds for way in kind.ways}
    with started(setting, total_bytes) as spark:
        source = exchange.make_pairs(spark, total_bytes)
        for number in range(1 + rounds):
            for kind in kinds:
                for way in kind.ways:
                    one = exchange.shuffled(spark, kind, way, source, verify=number == 0)
                    results.case({"setting": setting.text(), "way": way.name, "round": number}, one)
                    runs[way.word].append(one)
    return {way: {key: spread([one[key] for one in of[1:]]) for key in ("read_s", "job_s")} for way, of in runs.items()}


def read_seconds(measured, kinds):
    return sum(min(measured[way.word]["read_s"]["median"] for way in kind.ways if way.is_whole) for kind in kinds)
