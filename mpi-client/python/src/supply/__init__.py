"""A rank reads, in place, the rows that Spark supplies.

    import supply

    with supply.open("/dev/shm/my-run/conf") as s:      # or supply.from_comm(MPI.COMM_WORLD)
        for block in s:
            x = block.numpy("data")                     # numpy.ndarray, read-only, in the memory that Spark wrote
            t = block.torch("label")                    # torch.Tensor, in the same memory
            a = pyarrow.record_batch(block)             # pyarrow.RecordBatch, in the same memory

Spark reuses the memory of a block when you have dropped the block and every array, tensor and batch taken of it.
docs/PYTHON.md is the guide. docs/PYTHON-API.md lists the public names, of `supply`, `supply.torch`, `supply.spark` and
`supply.linalg`: other names and modules may change.
"""

from supply._core import contract_version
from supply._core import version as __version__
from supply.block import Block
from supply.errors import (
    AllHeldError,
    ColumnError,
    ConfigError,
    ContractError,
    InUseError,
    NoSpaceError,
    SparkError,
    SupplyError,
    SupplyMemoryError,
    SupplyOSError,
    SupplyTimeoutError,
)
from supply.exchange import Exchange
from supply.opening import create_results, from_comm, open
from supply.pair import Statistics, Supply
from supply.results import Result

__all__ = [
    "AllHeldError",
    "Block",
    "ColumnError",
    "ConfigError",
    "ContractError",
    "Exchange",
    "InUseError",
    "NoSpaceError",
    "Result",
    "SparkError",
    "Statistics",
    "Supply",
    "SupplyError",
    "SupplyMemoryError",
    "SupplyOSError",
    "SupplyTimeoutError",
    "__version__",
    "contract_version",
    "create_results",
    "from_comm",
    "open",
]
