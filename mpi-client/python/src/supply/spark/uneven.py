"""Ranks with different numbers of batches: why a collective hangs or fails."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from supply.ranks.messages import Loop
from supply.spark.failures import Cause, Priority

# As gloo, NCCL and torch.distributed say that a collective has failed.
_COLLECTIVE = re.compile(r"gloo|NCCL|ProcessGroup|DistBackendError|torch[./]distributed", re.IGNORECASE)


def who_waits(loops: Mapping[int, Loop], returned: Container[int]) -> str | None:
    """Names a rank that has had all its batches, and one that has more. None: there are none.

    loops: by rank. returned: the ranks whose function has returned.
    """
    ended = {rank: loop for rank, loop in loops.items() if loop.has_all}
    busy = {rank: loop for rank, loop in loops.items() if not loop.has_all and rank not in returned}
    for first, had in sorted(ended.items(), key=lambda each: each[1].batches):
        for other, loop in busy.items():
            if loop.epoch == had.epoch and loop.batches > had.batches:
                does = "returned" if first in returned else "left the epoch"
                return (
                    f"rank {first} has had all its rows of epoch {had.epoch} ({had.batches} batches) and has {does}, "
                    f"while rank {other} is in batch {loop.batches}"
                )
    return None


def explain_uneven(cause: Cause, text: str | None) -> None:
    """Adds what who_waits() says to the text of a hang, and of a collective that has failed."""
    hangs = cause.priority in (Priority.PAIR, Priority.CONSEQUENCE)
    if text is None or not (hangs or (cause.priority == Priority.RANK and _COLLECTIVE.search(str(cause.error)))):
        return
    cause.error.args = (
        f"{str(cause.error).rstrip()}\n{text}. With uneven='keep' ranks make different numbers of steps, and a "
        "collective (all_reduce, DistributedDataParallel) waits for all ranks: set uneven='pad' or 'drop'",
    )
