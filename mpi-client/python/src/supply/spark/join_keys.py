"""Keys by which the results of a run must not be joined."""

from __future__ import annotations

import logging
from typing import Any

from supply.result_schema import fields_of

_log = logging.getLogger("supply.spark")

# Nobody joins by a column of another type.
_KEYS = ("byte", "short", "integer", "long", "string", "binary", "date", "timestamp", "timestamp_ntz")


def warn_of(df: Any, schema: str) -> None:
    """Warns of keys in the results that df may give to other rows when Spark computes it again."""
    context = df.sparkSession.sparkContext
    dependent = set(context._jvm.supply.python.OrderDependence.columns(df._jdf))
    written = {field[0] for field in fields_of(schema)}
    keys = [
        f"'{field.name}'"
        for field in df.schema.fields
        if field.name in dependent & written and field.dataType.typeName() in _KEYS
    ]
    if keys:
        _log.warning(
            "results: %s depends on the order in which Spark computes the rows of df (as monotonically_increasing_id() "
            "does after a shuffle). Spark may compute it again, in another order, also if df is cached: a join by it "
            "then pairs wrong rows. Instead of a join, name in results the columns of df that you need, without a "
            "type; or join by a key of the data",
            ", ".join(keys),
        )
