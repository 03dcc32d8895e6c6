"""Checks of arguments as users write them. Each names the argument, its value, and what it must be."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from supply.errors import ConfigError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def shown(value: Any) -> str:
    """A value for a message: with its type if that is not plain from it."""
    return f"{value!r} ({type(value).__name__})"


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


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        listed = ", ".join(map(repr, choices[:-1]))
        raise ConfigError(f"{name} is {value!r}: it must be {listed} or {choices[-1]!r}{close_to(value, choices)}")


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
