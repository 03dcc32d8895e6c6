"""The data set of this rank, for a script: `supply.spark.data()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supply.errors import RunError

if TYPE_CHECKING:
    from supply.ranks.rank_data import RankData

_current: RankData | None = None


def data() -> RankData:
    """This rank's data set, in a script that Supplier.run has started."""
    if _current is None:
        raise RunError("supply.spark.data() is for a script that Supplier.run starts on a rank")
    return _current


def set_data(dataset: RankData) -> None:
    global _current
    _current = dataset
