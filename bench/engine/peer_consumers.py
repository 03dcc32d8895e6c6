"""Consumers of the peers that send to C programs: they listen, Spark's task connects."""

import contextlib
import tempfile

from engine import paths, spread
from engine.pairs import Rank

NAMES = {
    "tcp-rows": "bench-tcp",
    "tcp-chunks": "bench-tcp",
    "files-mapped": "bench-files",
    "files-written": "bench-files",
}


@contextlib.contextmanager
def consumer(kind, timeout):
    """Its process, and the words of the limit that sends to it (Limit.scala)."""
    started = Rank({"mapped_files": "", "named_pipes": ""}, NAMES[kind], timeout=timeout)
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        try:
            words = [kind, str(started.answer()["port"])]
            yield started, words + ([folder] if NAMES[kind] == "bench-files" else [])
        finally:
            started.close()


def liblmdb_words(folder, options):
    """The words of the limit that is a rank reading the database itself."""
    return ["program", paths.program("bench-lmdb"), str(folder), "0", "1", "sum", str(options.ring)]


def figures(rounds, warm_up, rank):
    """Of the peer's part of the rounds. `rank`: what its consumer has printed; None where the limit is the consumer itself, if any is."""
    limits = [round_["limit"] for round_ in rounds[1 + warm_up :]]
    if rank is None:
        first = [limit["first_nanos"] for limit in limits]
    else:
        first = [then - limit["start"] for then, limit in zip(rank["first_block"][1 + warm_up :], limits)]
    return {
        "seconds": spread.of([limit["nanos"] / 1e9 for limit in limits]),
        "first_seconds": spread.of([nanos / 1e9 for nanos in first]) if any(first) else None,
        "rank_peak_bytes": (limits[-1] if rank is None else rank)["peak_bytes"] or None,
    }
