"""The versions that driver and ranks must share."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

import supply
from supply.errors import RunError


@dataclass
class Versions:
    """Of the process that makes it."""

    supply: str = field(default=supply.__version__)
    python: str = field(default_factory=platform.python_version)

    def check(self, host: str) -> None:
        """Refuses another version of this package or of Python than the driver's. host: of this process."""
        if supply.__version__ != self.supply:
            raise RunError(
                f"the package supply is {supply.__version__} on {host}, but {self.supply} on the driver: install the "
                "same version"
            )
        here = platform.python_version()
        if here.split(".")[:2] != self.python.split(".")[:2]:
            raise RunError(
                f"Python is {here} on {host}, but {self.python} on the driver: set PYSPARK_PYTHON to the same version"
            )
