"""What this package takes from supply_launch, the commands' own package, fails in the words of this one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from supply.errors import RunError, RunTimeoutError
from supply_launch.command import Failure, TimeLimit


@contextlib.contextmanager
def launch_errors() -> Iterator[None]:
    """Within it, a Failure of the launchers is a RunError."""
    try:
        yield
    except TimeLimit as error:
        raise RunTimeoutError(str(error)) from error
    except Failure as error:
        raise RunError(str(error)) from error
