"""Positions that exist."""

from __future__ import annotations

from supply.errors import SupplyError


def known(position: str) -> str:
    """The position, of a call that returns "" if there is none."""
    if not position:
        raise SupplyError(
            "this rank reads several pairs, because there are more feeders than ranks: it has positions at the ends of "
            "epochs only"
        )
    return position
