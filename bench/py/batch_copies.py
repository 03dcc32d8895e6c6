"""What the copy of a batch costs: batches of a block with and without zero_copy, and a plain copy of their bytes.

Values in place lie in a file, at equal distances.

    build/wheel-venv/bin/python bench/py/batch_copies.py

Prints, for each size, the microseconds of a batch in the best of 100 rounds. The wheel's environment has the package
`supply`. The task of its tests supplies the block, so no Spark runs.
"""

import os
import pathlib
import sys
import tempfile
import time

import pyarrow
import spark_supplier
import torch
from spark_supplier.batches import Batches
from spark_supplier.block_values import BlockValues

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "mpi-client" / "python" / "tests"))
from foreign_file import ForeignFile  # noqa: E402
from task import Task  # noqa: E402

BATCHES_OF_BLOCK, BLOCKS, ROUNDS = 4, 4, 100
MIB = 1 << 20
# Bytes between values in place, as in a database with pages.
GAP = 4096
# Name, elements of a batch, numbers of an element, Arrow type, and whether they are in place.
SIZES = [
    ("64 x 784 float", 64, 784, "float32", False),
    ("8 x 192 KiB", 8, 192 * 1024, "uint8", False),
    ("8 x 192 KiB in place", 8, 192 * 1024, "uint8", True),
]


def received(folder, elements, numbers, kind, in_place):
    """A pair with a block of elements of this size, and the block."""
    ring = 8 * (elements * numbers * pyarrow.type_for_alias(kind).bit_width // 8 + MIB)
    (folder / "mapped-files.conf").write_text(f"{folder}/mapped ring={ring} block={ring // 4}\n")
    (folder / "named-pipes.conf").write_text(f"{folder}/request {folder}/notification\n")
    rank = spark_supplier.ranks.open(folder, 0)
    task = Task(*(folder / name for name in ("mapped", "request", "notification")))
    if in_place:
        data = [os.urandom(numbers) for _ in range(elements)]
        values = pyarrow.array(data, pyarrow.binary_view())
        file = ForeignFile(folder / "foreign", data, [GAP] * elements)
    else:
        numbers_of_all = pyarrow.array([1] * (elements * numbers), kind)
        values, file = pyarrow.FixedSizeListArray.from_arrays(numbers_of_all, numbers), None
    schema = pyarrow.schema([pyarrow.field("x", values.type, False)])
    task.supply(pyarrow.record_batch([values], schema=schema), foreign_file=file)
    return rank, task, rank.next_block()


def microseconds(batches):
    """The time of a batch in the best round. Each batch is dropped before the next one, as a loop does."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        count = sum(1 for _ in batches())
        rounds.append((time.perf_counter() - begin) / count * 1e6)
    return min(rounds)


def copies(source, size):
    """Copies of the block's bytes, batch by batch, into one tensor: what memcpy can do at best."""
    target = torch.empty_like(source[:size])
    for _ in range(BLOCKS):
        for part in source.split(size):
            yield target.copy_(part)


def measured(size, block):
    """Microseconds of a batch of this size: views, copies, and the memcpy baseline."""

    def batches(zero_copy):
        return Batches(BlockValues(["x"], {}, {}, {}), size, {}, zero_copy).of([block] * BLOCKS)

    baseline = microseconds(lambda: copies(block.torch("x", copy=True), size))
    return microseconds(lambda: batches(True)), microseconds(lambda: batches(False)), baseline


def main():
    torch.set_num_threads(1)
    for name, size, numbers, kind, in_place in SIZES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            rank, task, block = received(pathlib.Path(folder), BATCHES_OF_BLOCK * size, numbers, kind, in_place)
            views, copied, baseline = measured(size, block)
            print(f"{name}: zero_copy {views:.1f} us, copies {copied:.1f} us; memcpy baseline {baseline:.1f} us")
            del block
            rank.abort("done")
            task.leave()


if __name__ == "__main__":
    main()
