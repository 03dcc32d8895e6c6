"""Arguments as users write them: checks, sizes, and the options of Dataset. Errors name argument and value."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import numbers
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

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


_P = ParamSpec("_P")
_R = TypeVar("_R")


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


_SECONDS_OF = {"s": 1, "sec": 1, "min": 60, "h": 3600}


def duration(name: str, value: Any) -> float:
    """A time in seconds: a number of seconds, or a text as "30 s", "10 min" or "1 h"."""
    if not isinstance(value, str):
        return seconds(name, value)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value)
    if found is None or found[2] not in _SECONDS_OF:
        raise ConfigError(f"{name} is {value!r}: it must be a number of seconds, or a text as '30 s' or '10 min'")
    return seconds(name, float(found[1]) * _SECONDS_OF[found[2]])


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        listed = ", ".join(map(repr, choices[:-1]))
        raise ConfigError(f"{name} is {brief(value)}: it must be {listed} or {choices[-1]!r}{close_to(value, choices)}")


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


def names_unknown_options(hint: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: a call with an option that does not exist fails as refuse_unknown() says."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known = inspect.signature(function).parameters

        @functools.wraps(function)
        def checked(*args: _P.args, **options: _P.kwargs) -> _R:
            refuse_unknown(function.__qualname__, options, known, hint)
            return function(*args, **options)

        return checked

    return decorate


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
    if isinstance(ragged, str):
        one_of("ragged", ragged, FORMS[:-1])
    else:
        for name, form in _by_column("ragged", ragged, columns):
            one_of(f"ragged[{name!r}]", form, FORMS)
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
        if name not in columns and not any(str(name).startswith(f"{column}.") for column in columns):
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
