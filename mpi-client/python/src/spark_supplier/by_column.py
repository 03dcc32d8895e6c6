"""Options by column: what is set for a column holds for everything in it that has no setting of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

_V = TypeVar("_V")


class ByColumn(Generic[_V]):
    """What is set for "point" is set for "point.x", too. Of columns that are named, only their own settings hold."""

    def __init__(self, given: Mapping[str, _V] | None, columns: Collection[str] = ()) -> None:
        self.given = dict(given or {})
        self._columns = columns

    def of(self, name: str) -> _V | None:
        """The setting of a column or of something in it, by its name. None: there is none."""
        while self.given:
            if name in self.given:
                return self.given[name]
            if name in self._columns or "." not in name:
                break
            name = name.rpartition(".")[0]
        return None

    def fields(self) -> list[str]:
        """The names that are set, but are no columns themselves."""
        return [name for name in self.given if name not in self._columns]
