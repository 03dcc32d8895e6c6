"""The output of a rank, on its way to the driver."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator, Mapping
from typing import IO, cast

from supply.ranks.control import Peer
from supply.ranks.messages import Output

# How long children of an ended rank, which may hold its streams, may still print.
_REST_SECONDS = 1
_LONGEST_LINE = 1 << 16


@contextlib.contextmanager
def forwarded(driver: Peer, rank: int, streams: Mapping[str, IO[bytes]]) -> Iterator[None]:
    """While the block runs, the driver gets the lines of these streams: "stdout" and "stderr" of the rank."""
    readers = [
        threading.Thread(target=_forward, args=(driver, rank, name, stream), daemon=True)
        for name, stream in streams.items()
    ]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for reader in readers:
            reader.join(_REST_SECONDS)


def _forward(driver: Peer, rank: int, name: str, stream: IO[bytes]) -> None:
    """A carriage return ends a line, too, as progress bars print it. A longer line is cut."""
    text = io.TextIOWrapper(cast(io.BufferedReader, stream), encoding="utf-8", errors="replace", newline=None)
    while line := text.readline(_LONGEST_LINE):
        driver.send(Output(rank, name, line.rstrip("\n")))
