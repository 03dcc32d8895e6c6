"""Reads in place, on MPI ranks, what Spark supplies.

    import supply

    with supply.open("/dev/shm/my-run/conf") as s:      # or supply.from_comm(MPI.COMM_WORLD)
        for block in s:
            x = block.numpy("data")                     # numpy.ndarray, read-only, in the memory that Spark wrote
            t = block.torch("label")                    # torch.Tensor, likewise
            a = pyarrow.record_batch(block)             # likewise

A block goes back to Spark when the last reference to it, and to what was taken of it, is gone. docs/PYTHON.md has the rest.
"""

from supply._block import Block
from supply._core import contract_version
from supply._core import version as __version__
from supply._errors import (
    AllHeldError,
    ColumnError,
    ConfigError,
    ContractError,
    InUseError,
    NoSpaceError,
    SparkError,
    SupplyError,
    SupplyTimeoutError,
)
from supply._supply import Statistics, Supply, from_comm, open

__all__ = [
    "AllHeldError",
    "Block",
    "ColumnError",
    "ConfigError",
    "ContractError",
    "InUseError",
    "NoSpaceError",
    "SparkError",
    "Statistics",
    "Supply",
    "SupplyError",
    "SupplyTimeoutError",
    "contract_version",
    "from_comm",
    "open",
]
