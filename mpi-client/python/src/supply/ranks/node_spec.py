"""What a node process needs to know."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

import supply
from supply.errors import SupplierError
from supply.ranks.run_files import RunFiles


@dataclass
class NodeSpec:
    """ranks: the numbers of this node's ranks. environment: for them, with that of control.connect()."""

    host: str
    ranks: list[int]
    world_size: int
    node_index: int
    files: RunFiles
    environment: dict[str, str]
    supply_version: str = field(default=supply.__version__)
    python_version: str = field(default_factory=platform.python_version)

    def check_versions(self) -> None:
        """Refuses another version of this package or of Python than the driver's."""
        if supply.__version__ != self.supply_version:
            raise SupplierError(
                f"the package supply is {supply.__version__} on {self.host}, but {self.supply_version} on the driver: "
                "install the same version"
            )
        here = platform.python_version()
        if here.split(".")[:2] != self.python_version.split(".")[:2]:
            raise SupplierError(
                f"Python is {here} on {self.host}, but {self.python_version} on the driver: set PYSPARK_PYTHON to the "
                "same version"
            )
