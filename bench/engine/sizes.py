"""Sizes as people write them, and as everything else of the project does: 784, 3KiB, 16MiB, 1GiB."""

import re

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse(text):
    match = re.fullmatch(r"([1-9][0-9]*)(|KiB|MiB|GiB)", text)
    if not match:
        raise ValueError(f"'{text}' is not a size: write it as 784, 3KiB, 16MiB or 1GiB")
    return int(match[1]) * _UNITS[match[2]]


def text(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]} {unit}"
    return f"{size} B"
