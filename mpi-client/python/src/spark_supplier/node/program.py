"""Functions and classes of the driver's program, for the processes that a rank starts.

multiprocessing pickles them by their name in a module. Those of the driver's program and of notebooks have no module
here. A forked child has the rank's memory and finds them there; another one gets them by value, as ranks do. In each
process the functions of one module of the program share their globals, whichever pickle has brought them.
"""

from __future__ import annotations

import io
import sys
import uuid
from collections.abc import Callable
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import FunctionType
from typing import Any

# The globals of modules of the program, in this process, by a key that is the same in all processes of a rank.
_globals: dict[str, dict[str, Any]] = {}
_keys: dict[int, str] = {}


def share_program(function: Any) -> None:
    """Lets processes that this one starts have the function, and what it refers to. Call it before any starts."""
    ForkingPickler.reducer_override = lambda _, value: _reduced(value)  # type: ignore[method-assign]
    left = [function]
    while left:
        value = left.pop()
        if isinstance(value, partial):
            left += [value.func, *value.args]
        value = getattr(value, "__func__", value)
        if isinstance(value, FunctionType) and id(value.__globals__) not in _keys and not _has_name(value):
            _key(value.__globals__)
            left += value.__globals__.values()


def forget_program() -> None:
    """The call has ended: a rank that waits for another one keeps nothing of its program."""
    _globals.clear()
    _keys.clear()


def _reduced(value: Any) -> Any:
    if not isinstance(value, (FunctionType, type)) or _has_name(value):
        return NotImplemented
    if not any(f"multiprocessing.popen_{method}" in sys.modules for method in ("spawn_posix", "forkserver")):
        for key, names in _globals.items():
            if _found(names.get, value) is value:
                return _named, (key, value.__qualname__)
    from pyspark import cloudpickle

    class Pickler(cloudpickle.CloudPickler):
        def __init__(self, file: Any) -> None:
            super().__init__(file)
            self.globals_ref = _Shared()

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, FunctionType):
                _key(obj.__globals__)
            reduced = super().reducer_override(obj)
            if isinstance(obj, FunctionType) and isinstance(reduced, tuple):
                return (*reduced[:5], partial(_set_state, reduced[5]))
            return reduced

    content = io.BytesIO()
    Pickler(content).dump(value)
    return _loaded, (content.getvalue(),)


def _loaded(payload: bytes) -> Any:
    from pyspark import cloudpickle

    value = cloudpickle.loads(payload)
    share_program(value)
    return value


def _named(key: str, name: str) -> Any:
    first, *rest = name.split(".")
    value = _globals[key][first]
    for each in rest:
        value = getattr(value, each)
    return value


class _Shared(dict[int, Any]):
    """Of cloudpickle: the globals of a function, by their id here, as what each process finds or makes."""

    def setdefault(self, identity: int, _: Any = None) -> Any:
        return super().setdefault(identity, _Globals(_keys[identity]))


class _Globals(dict[str, Any]):
    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def __reduce__(self) -> Any:
        return _globals_of, (self._key, dict(self))


def _globals_of(key: str, names: dict[str, Any]) -> dict[str, Any]:
    found = _globals.setdefault(key, names)
    _keys[id(found)] = key
    return found


def _set_state(write: Callable[[Any, Any], None], function: FunctionType, state: Any) -> None:
    """What this process has already stays: it may have changed it."""
    names = state[1]["__globals__"]
    for name in names.keys() & function.__globals__.keys():
        del names[name]
    write(function, state)


def _key(names: dict[str, Any]) -> str:
    if id(names) not in _keys:
        _globals_of(uuid.uuid4().hex, names)
    return _keys[id(names)]


def _has_name(value: Any) -> bool:
    module = sys.modules.get(value.__module__)
    return _found(lambda name: getattr(module, name, None), value) is value


def _found(first: Callable[[str], Any], value: Any) -> Any:
    """What has the value's name among names."""
    name, *rest = value.__qualname__.split(".")
    found = first(name)
    for each in rest:
        found = getattr(found, each, None)
    return found
