"""What Supplier.run checks of the function, and of what travels with it."""

from __future__ import annotations

import functools
import inspect
import io
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark import cloudpickle

from spark_supplier.arguments import brief, shown
from spark_supplier.driver.sessions import is_of_connect
from spark_supplier.errors import RunConfigError, RunError
from spark_supplier.settings import where_is

# How deep an object that cannot be pickled is looked for.
_DEPTH = 4

_KEYWORD, _KEYWORD_ONLY = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


def functions_of(function: Any) -> list[Callable[..., Any]]:
    """Those of a call: one, or several that are given as a list; none: it is the path of a script.

    Refuses what is neither a function nor such a path, and functions that would run nothing.
    """
    if not isinstance(function, (list, tuple)):
        _check(function)
        return [function] if callable(function) else []
    if not function:
        raise RunConfigError("functions is an empty list: give a function, or several")
    for each in function:
        _check(each)
        if not callable(each):
            raise RunConfigError(f"{brief(each)} is a script, and a list is of functions alone")
    return list(function)


def _check(function: Any) -> None:
    """Refuses what is neither a function nor the path of a script, and functions that would run nothing."""
    if isinstance(function, (str, os.PathLike)):
        return
    if not callable(function):
        hint = ": pass the function itself, without ()" if function is None or inspect.isgenerator(function) else ""
        raise RunError(f"function is {shown(function)}, but must be a function, or the path of a script{hint}")
    # Python's own, as `list`, are functions to most people.
    if inspect.isclass(function) and function.__module__ != "builtins":
        raise RunError(
            f"{function.__name__} is a class, and calling it makes an object only: pass a function, or a method of an "
            f"object, as {function.__name__}(…).train"
        )
    if any(f"{kind.__module__}.{kind.__name__}" == "torch.nn.modules.module.Module" for kind in type(function).__mro__):
        raise RunError(
            f"function is a {type(function).__name__}, which is a torch.nn.Module: pass a function that trains it, and "
            "the module as an argument"
        )
    called = _unwrapped(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise RunError(f"{_name(function)} has a `yield`, so that calling it runs nothing: return the result instead")
    if inspect.iscoroutinefunction(called):
        raise RunError(f"{_name(function)} is `async`, so that calling it runs nothing: pass a plain function")


# Arguments of Supplier.run that a function cannot have.
_OF_RUN = ("results", "resume")


def check_arguments(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuses arguments that the function does not take, with what to write instead. function: None: a script."""
    try:
        signature = None if function is None else inspect.signature(function)
    except (TypeError, ValueError):
        # A function in C.
        signature = None
    if signature is None:
        return
    bound = _bound(function)
    for name, parameter in signature.parameters.items():
        if name in _OF_RUN and name not in bound and parameter.kind in (_KEYWORD, _KEYWORD_ONLY):
            raise RunConfigError(
                f"{_name(function)}{signature} has a parameter '{name}', which is an option of Supplier.run: pass "
                f"functools.partial({_name(function)}, {name}=…)"
            )
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        hints = [
            f"{name!r}: {hint}"
            for name in kwargs
            if name not in signature.parameters and (hint := where_is(name, signature.parameters))
        ]
        raise RunConfigError(
            f"{_name(function)}{signature} cannot be called with the data, args={brief(args)} and "
            f"kwargs={brief(kwargs)}: {error}{''.join(f'. {hint}' for hint in hints)}"
        ) from None


def _bound(function: Any) -> set[str]:
    """The parameters that functools.partial has given."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return names


def pickled(job: Any) -> bytes:
    """The job for the ranks. Names the object that cannot be pickled."""
    try:
        return _dumps(job)
    except Exception as error:
        found = [culprit for part in _captured(job) for culprit in _culprits(*part, _DEPTH)]
        names = [f"'{name}' ({type(value).__name__})" for name, value in found]
        what = f"{', '.join(names)} cannot be pickled" if names else "it cannot be pickled"
        fix = (
            "ranks have no Spark session: give them rows as df or validation, and values as arguments, and keep "
            "the session out of the object, or leave it out in __getstate__"
            if any(_is_of_spark(value) for _, value in found)
            else "make it inside the function, or pass what it is made from"
        )
        first = str(error).strip().split("\n", 1)[0]
        of_script = "of Rows" if job.script is None else job.script.path
        functions = ", ".join(map(_name, job.functions)) or of_script
        raise RunError(f"the function {functions} cannot go to the ranks: {what} ({first}): {fix}") from error


class _Pickler(cloudpickle.CloudPickler):
    """Refuses sessions and DataFrames of Spark Connect, which PySpark pickles for its own servers."""

    def reducer_override(self, value: Any) -> Any:
        if is_of_connect(value) and type(value).__name__ in ("SparkSession", "DataFrame"):
            raise pickle.PicklingError(f"a {type(value).__name__} of Spark Connect")
        return super().reducer_override(value)


def _dumps(value: Any) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def _captured(job: Any) -> Iterator[tuple[str, Any]]:
    yield from job.data.options.items()
    yield from ((f"args[{i}]", value) for i, value in enumerate(job.args))
    yield from job.kwargs.items()
    for function in job.functions:
        yield from _parts(getattr(function, "__name__", "function"), function)


def _culprits(name: str, value: Any, depth: int) -> list[tuple[str, Any]]:
    """The innermost parts of a value that cannot be pickled."""
    if _pickles(value):
        return []
    parts = [] if depth == 0 or _is_of_spark(value) else list(_parts(name, value))
    if inspect.isfunction(value):
        parts = [(f"{variable} of {name}", part) for variable, part in parts]
    return [culprit for part in parts for culprit in _culprits(*part, depth - 1)] or [(name, value)]


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a value refers to, by the names that its user has for it."""
    if isinstance(value, functools.partial):
        yield from _parts(getattr(value.func, "__name__", name), value.func)
        yield from ((f"{name} of partial()", argument) for argument in value.args)
        yield from value.keywords.items()
    elif inspect.ismethod(value):
        yield from _parts("self", value.__self__)
        yield from _parts(name, value.__func__)
    elif inspect.isfunction(value):
        variables = inspect.getclosurevars(value)
        yield from {**variables.globals, **variables.nonlocals}.items()
        yield from _parts(name, getattr(value, "__wrapped__", None))
    elif isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set)):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(value))
    elif hasattr(value, "__dict__") and not inspect.ismodule(value) and not inspect.isclass(value):
        yield from ((f"{name}.{attribute}", item) for attribute, item in vars(value).items())


def _is_of_spark(value: Any) -> bool:
    return any(kind.__module__.startswith("pyspark.") for kind in type(value).__mro__)


def _pickles(value: Any) -> bool:
    try:
        _dumps(value)
    except Exception:
        return False
    return True


def _unwrapped(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) or inspect.ismethod(function):
        return function
    return type(function).__call__


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__" if inspect.ismethod(function) else "__name__", function))
