"""A rank's side, in a program that something else starts: read, in place, the rows that Spark supplies.

    from spark_supplier import ranks

    with ranks.open("/dev/shm/my-run/conf") as s:       # or ranks.from_comm(MPI.COMM_WORLD)
        for block in s:
            x = block.numpy("data")                     # numpy.ndarray, read-only, in the memory that Spark wrote
            t = block.torch("label")                    # torch.Tensor, in the same memory
            a = pyarrow.record_batch(block)             # pyarrow.RecordBatch, in the same memory

Spark reuses the memory of a block when you have dropped the block and every array, tensor and batch taken of it.
docs/RANKS.md is the guide.
"""

from spark_supplier.block import Block
from spark_supplier.exchange import Exchange
from spark_supplier.opening import create_results, from_comm, open
from spark_supplier.pair import ExchangeStatistics, Reader, Statistics
from spark_supplier.results import ResultWriter

__all__ = [
    "Block",
    "Exchange",
    "ExchangeStatistics",
    "Reader",
    "ResultWriter",
    "Statistics",
    "create_results",
    "from_comm",
    "open",
]
