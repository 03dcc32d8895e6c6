"""Values to supply, and how to receive them."""

import pyarrow

from layout import CONSTANTS

NUMBERS = {
    "int8": -128, "uint8": 255, "int16": -32768, "uint16": 65535, "int32": -(2**31), "uint32": 2**32 - 1,
    "int64": -(2**63), "uint64": 2**64 - 1, "float32": 0.5, "float64": -0.25,
}  # fmt: skip
# PyTorch older than 2.3 lacks these types.
UNSIGNED = ["uint16", "uint32", "uint64"]


def batch(**columns):
    """A record batch of Arrow arrays, or of (values, type). Columns without nulls are not nullable."""
    arrays = {name: pyarrow.array(*column) if isinstance(column, tuple) else column for name, column in columns.items()}
    fields = [pyarrow.field(name, array.type, nullable=array.null_count > 0) for name, array in arrays.items()]
    return pyarrow.record_batch(list(arrays.values()), schema=pyarrow.schema(fields))


def numbers(first, count=4):
    """A record batch with the column x: `count` numbers from `first` on."""
    return batch(x=(range(first, first + count), "int64"))


def received(pair, supplied):
    rank, task = pair
    task.supply(supplied)
    return rank.next_block()


def lies_in_mapping(rank, address, size):
    start, length = rank.mapping
    return start + CONSTANTS["RING_OFFSET"] <= address and address + size <= start + length
