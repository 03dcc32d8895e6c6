"""Other ways from Spark to a rank."""

import contextlib
import tempfile

from engine import machine
from engine.figures import spread
from engine.pairs import NO_FILES, Rank

NAMES = {
    "tcp-rows": "bench-tcp",
    "tcp-chunks": "bench-tcp",
    "files-mapped": "bench-files",
    "files-written": "bench-files",
}


@contextlib.contextmanager
def consumer(kind, timeout):
    """Yields the consumer's process, and the words of the baseline that sends to it (Baseline.scala)."""
    started = Rank(NO_FILES, machine.program(NAMES[kind]), timeout=timeout)
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        try:
            words = [kind, str(started.answer()["port"])]
            yield started, words + ([folder] if NAMES[kind] == "bench-files" else [])
        finally:
            started.close()


def liblmdb_words(folder, options, part=0, parts=1, how="sum"):
    """The words of the baseline in which a rank reads a part of the database by itself (c/lmdb_walk.c)."""
    return ["program", machine.program("bench-lmdb"), *map(str, (folder, part, parts, how, options.ring))]


def figures(rounds, warm_up, rank):
    """
    Figures of an alternative, of the rounds that count for its ratio, too. rounds: as cycle.run() returns them.

    rank: its consumer's output, for rounds of one attempt; None if it has no consumer.
    """
    counted = [
        (number, of_pairs["measured"][0]["baseline"])
        for number, of_pairs in enumerate(rounds, 1 + warm_up)
        if of_pairs["counts"]
    ]
    baselines = [baseline for _, baseline in counted]
    if rank is None:
        first = [baseline["first_nanos"] for baseline in baselines]
    else:
        first = [rank["first_block"][number] - baseline["start"] for number, baseline in counted]
    return {
        "seconds": spread([baseline["nanos"] / 1e9 for baseline in baselines]),
        "first_seconds": spread([nanos / 1e9 for nanos in first]) if any(first) else None,
        "rank_peak_bytes": (baselines[-1] if rank is None else rank)["peak_bytes"] or None,
    }
