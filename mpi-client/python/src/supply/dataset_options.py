"""Checks of SupplyDataset's options. The driver checks them, too, and may lack PyTorch."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from supply.arguments import close_to, one_of, shown, whole_number
from supply.errors import ConfigError

# A null of `nulls` that is 0, or empty, and gets a column of its own that says so.
MASK = "mask"
MASK_SUFFIX = "_mask"


def column_names(columns: Any) -> list[str]:
    """The option `columns` as a list of names."""
    is_list = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes, Mapping))
    if not is_list or _is_column(columns):
        raise ConfigError(
            f"columns is {shown(columns)}: it must be a list of names of columns, as ['features', 'label']"
        )
    names = list(columns)
    if not names:
        raise ConfigError("columns is empty: it must be a list of one or more names of columns")
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise ConfigError(f"columns[{index}] is {_not_a_name(name)}")
        if name in names[:index]:
            raise ConfigError(f"columns names {name!r} twice: leave one out")
    return names


def check_options(
    columns: list[str],
    *,
    batch_size: Any,
    uneven: Any,
    transform: Any = None,
    collate_fn: Any = None,
    dtypes: Any = None,
    ragged: Any = None,
    nulls: Any = None,
) -> None:
    """Raises ConfigError. columns: from column_names()."""
    whole_number("batch_size", batch_size, 1)
    one_of("uneven", uneven, ("keep", "drop", "pad"))
    for option, function in (("transform", transform), ("collate_fn", collate_fn)):
        if function is not None and not callable(function):
            raise ConfigError(f"{option} is {shown(function)}: it must be a function")
    if transform is not None and collate_fn is not None:
        raise ConfigError("set either transform or collate_fn: one can call the other")
    for name, dtype in _by_column("dtypes", dtypes, columns):
        # A driver without PyTorch has no torch.dtype to compare with.
        if f"{type(dtype).__module__}.{type(dtype).__name__}" != "torch.dtype":
            raise ConfigError(f"dtypes gives {shown(dtype)} for {name!r}: it must be a torch.dtype, as torch.float32")
    for name, form in _by_column("ragged", ragged, columns):
        one_of(f"ragged[{name!r}]", form, ("list", "jagged"))
    for name, fill in _by_column("nulls", nulls, columns):
        if not isinstance(fill, (str, bytes, numbers.Real)) and getattr(fill, "dtype", None) is None:
            raise ConfigError(
                f"nulls gives {shown(fill)} for {name!r}: it must be a number, for text a text, for bytes bytes, or "
                f"{MASK!r}"
            )
        if isinstance(fill, str) and fill == MASK and name + MASK_SUFFIX in columns:
            raise ConfigError(
                f"nulls={{{name!r}: {MASK!r}}} adds a column {name + MASK_SUFFIX!r}, and columns has one of that name: "
                "rename yours, or leave it out of columns"
            )


def _by_column(option: str, given: Any, columns: list[str]) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ConfigError(f"{option} is {shown(given)}: it must be a dict by column")
    for name in given:
        if name not in columns:
            raise ConfigError(
                f"{option} names {name!r}, which is not one of columns ({', '.join(columns)}){close_to(name, columns)}"
            )
    return list(given.items())


def _is_column(value: Any) -> bool:
    """Whether it is a Column of Spark, which says that it is iterable."""
    return type(value).__module__.startswith("pyspark.sql") and type(value).__name__ == "Column"


def _not_a_name(value: Any) -> str:
    if _is_column(value):
        return (
            f"{value}, and not a name: give the names of columns of df, and make new columns in front, as with "
            "df.withColumn(name, column)"
        )
    return f"{shown(value)}: give the names of columns, as ['features', 'label']"
