"""The lines that a rank prints."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

_LONGEST = 1 << 16


def lines(stream: BinaryIO) -> Iterator[str]:
    """Lines without their ends. A carriage return ends a line, too, as progress bars print it. A longer line is cut."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline=None)
    while line := text.readline(_LONGEST):
        yield line.rstrip("\n")
