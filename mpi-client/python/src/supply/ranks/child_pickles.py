"""Functions and classes of the program, in processes that a rank starts: workers of a DataLoader, for example."""

from __future__ import annotations

import sys
from multiprocessing.reduction import ForkingPickler
from types import FunctionType
from typing import Any


def pickle_program_by_value() -> None:
    """With spawn and forkserver, multiprocessing pickles functions and classes by their name in a module.

    Those of the driver's program and of notebooks have none here, so children get them as ranks do: by value.
    """
    ForkingPickler.reducer_override = _reduced  # type: ignore[method-assign,assignment]


def _reduced(_: ForkingPickler, value: Any) -> Any:
    if not isinstance(value, (FunctionType, type)) or _has_name(value):
        return NotImplemented
    from pyspark import cloudpickle

    return cloudpickle.loads, (cloudpickle.dumps(value),)


def _has_name(value: Any) -> bool:
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value
