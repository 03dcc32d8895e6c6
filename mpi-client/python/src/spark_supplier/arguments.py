"""Arguments as users write them: checks, sizes, and the options of Dataset. Errors name argument and value."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from spark_supplier.errors import ConfigError

_SHIFTS = {"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


def optional_size(name: str, value: int | str | None) -> int | None:
    """Bytes of an int, or of a text as "64KiB", "8MiB" or "1GiB". name: of the option, for the ConfigError."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+) ?([KMGT]iB|)", str(value))
    if found is None or isinstance(value, bool) or int(found[1]) == 0:
        raise ConfigError(f"{name} is {value!r}: it must be a number of bytes, or a text as '64KiB', '8MiB' or '1GiB'")
    return int(found[1]) << _SHIFTS[found[2]]


_SHOWN = 200


def brief(value: Any) -> str:
    """A value for a message, cut."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def shown(value: Any) -> str:
    """As brief(), with its type."""
    return f"{brief(value)} ({type(value).__name__})"


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """An int, or an integer of NumPy. least: the smallest that is allowed."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    what = "a whole number" if least is None else f"a whole number, {least} or more"
    if number is None:
        raise ConfigError(f"{name} is {shown(value)}: it must be {what}")
    if least is not None and number < least:
        raise ConfigError(f"{name} is {number}: it must be {what}")
    return number


def seconds(name: str, value: Any) -> float:
    """A time limit."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ConfigError(f"{name} is {shown(value)}: it must be a number of seconds above 0")
    if not 0 < float(value) < math.inf:
        raise ConfigError(f"{name} is {value!r}: it must be a number of seconds above 0")
    return float(value)


# Seconds, if neither open() nor SUPPLY_TIMEOUT sets it (options.c).
_TIMEOUT = 120


def limit_of(timeout: float | None) -> float:
    """The limit for other ranks is twice the timeout: each of them may first wait one timeout for Spark."""
    try:
        return 2 * (timeout or float(os.environ.get("SUPPLY_TIMEOUT") or _TIMEOUT))
    except ValueError:
        # Opening the pair refuses it with a text of its own.
        return 2 * _TIMEOUT


_SECONDS_OF = {"s": 1, "sec": 1, "min": 60, "h": 3600}


def duration(name: str, value: Any) -> float:
    """A time in seconds: a number of seconds, or a text as "30 s", "10 min" or "1 h"."""
    if not isinstance(value, str):
        return seconds(name, value)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value)
    if found is None or found[2] not in _SECONDS_OF:
        raise ConfigError(f"{name} is {value!r}: it must be a number of seconds, or a text as '30 s' or '10 min'")
    return seconds(name, float(found[1]) * _SECONDS_OF[found[2]])


def one_of(name: str, value: Any, choices: Sequence[Any]) -> Any:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        listed = ", ".join(map(repr, choices[:-1]))
        raise ConfigError(f"{name} is {brief(value)}: it must be {listed} or {choices[-1]!r}{close_to(value, choices)}")
    return value


def close_to(value: Any, known: Iterable[Any]) -> str:
    """A guess at what was meant, for the end of a message, or nothing."""
    names = {name.lower(): name for name in known if isinstance(name, str)}
    found = difflib.get_close_matches(value.lower(), names, 1) if isinstance(value, str) else []
    return f" (did you mean {names[found[0]]!r}?)" if found else ""


def refuse_unknown(function: str, given: Iterable[str], known: Collection[str], hint: str = "") -> None:
    """Raises Python's TypeError for an option that does not exist. hint: the end of its text, if none is alike."""
    for name in given:
        if name not in known:
            raise TypeError(f"{function} has no option {name!r}{close_to(name, known) or hint}")


# What `ragged` may be. The last one is of a column, and not of all lists.
FORMS = ("list", "jagged", "pad", "nested", "sparse")
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


def _function(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise ConfigError(f"{name} is {shown(value)}: it must be a function")
    return value


def _by_column(option: str, given: Any) -> list[tuple[Any, Any]]:
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"{option} is {shown(given)}: it must be a dict by column")
    return list((given or {}).items())


def _dtypes(option: str, given: Any) -> Any:
    for name, dtype in _by_column(option, given):
        # A driver without PyTorch has no torch.dtype to compare with.
        if f"{type(dtype).__module__}.{type(dtype).__name__}" != "torch.dtype":
            raise ConfigError(f"{option} gives {shown(dtype)} for {name!r}: it must be a torch.dtype, as torch.float32")
    return given


def _ragged(option: str, given: Any) -> Any:
    if isinstance(given, str):
        return one_of(option, given, FORMS[:-1])
    for name, form in _by_column(option, given):
        one_of(f"{option}[{name!r}]", form, FORMS)
    return given


def _nulls(option: str, given: Any) -> Any:
    for name, fill in _by_column(option, given):
        if not isinstance(fill, (str, bytes, numbers.Real)) and getattr(fill, "dtype", None) is None:
            raise ConfigError(
                f"{option} gives {shown(fill)} for {name!r}: it must be a number, for text a text, for bytes bytes, or "
                f"{MASK!r}"
            )
    return given


# What Rows and Dataset have in common: for each option, a function of its name and value that returns the value to use.
BATCH_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "batch_size": partial(whole_number, least=1),
    "uneven": partial(one_of, choices=("keep", "drop", "pad")),
    "transform": _function,
    "collate_fn": _function,
    "dtypes": _dtypes,
    "ragged": _ragged,
    "nulls": _nulls,
    "zero_copy": partial(one_of, choices=(True, False)),
}


def check_batches(given: Mapping[str, Any]) -> None:
    """Raises ConfigError. given: the options of BATCH_CHECKS, and "columns" from column_names()."""
    columns = given["columns"]
    if given["transform"] is not None and given["collate_fn"] is not None:
        raise ConfigError("set either transform or collate_fn: one can call the other")
    for option in ("dtypes", "ragged", "nulls"):
        for name in given[option] if isinstance(given[option], Mapping) else ():
            if name not in columns and not any(str(name).startswith(f"{column}.") for column in columns):
                raise ConfigError(
                    f"{option} names {name!r}, which is not one of columns ({', '.join(columns)})"
                    f"{close_to(name, columns)}"
                )
    for name, fill in (given["nulls"] or {}).items():
        if isinstance(fill, str) and fill == MASK and name + MASK_SUFFIX in columns:
            raise ConfigError(
                f"nulls={{{name!r}: {MASK!r}}} adds a column {name + MASK_SUFFIX!r}, and columns has one of that name: "
                "rename yours, or leave it out of columns"
            )


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
