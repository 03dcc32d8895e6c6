"""The columns of a DataFrame that Spark supplies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LMDB = "supply.datasource.LmdbRelation"


def selected(df: Any, columns: Sequence[str]) -> Any:
    """df with these columns. An LMDB that was read with inPlace keeps all: Spark supplies it only as it is."""
    return df if _is_in_place(df) else df.select(*columns)


def _is_in_place(df: Any) -> bool:
    plan = df._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation = plan.relation()
    return bool(relation.getClass().getName() == _LMDB and relation.inPlace())
