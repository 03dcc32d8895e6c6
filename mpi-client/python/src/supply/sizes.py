"""Sizes in bytes, as users write them."""

from __future__ import annotations

import re

from supply.errors import ConfigError

_SHIFTS = {"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


def optional_size(name: str, value: int | str | None) -> int | None:
    """Bytes of an int, or of a text as "64KiB", "8MiB" or "1GiB". name: of the option, for the ConfigError."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+) ?([KMGT]iB|)", str(value))
    if found is None or isinstance(value, bool) or int(found[1]) == 0:
        raise ConfigError(f"{name} is {value!r}: it must be a number of bytes, or a text as '64KiB', '8MiB' or '1GiB'")
    return int(found[1]) << _SHIFTS[found[2]]
