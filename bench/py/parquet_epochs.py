"""
Epochs over a Parquet file of random elements, every byte read, as loaders between Spark and training do it. Does one
epoch for each line on stdin, and answers each with a line of JSON.
"""

import json
import pathlib
import sys
import time

import numpy
import pyarrow
import pyarrow.parquet

ROW_GROUP_BYTES = 32 << 20
BATCH_ROWS = 64


def write(path, element_bytes, total_bytes):
    """Returns the elements' bytes, rounded down to whole row groups."""
    rows = ROW_GROUP_BYTES // element_bytes
    schema = pyarrow.schema([("label", pyarrow.int32()), ("data", pyarrow.binary())])
    random = numpy.random.default_rng(0)
    offsets = pyarrow.py_buffer(numpy.arange(0, (rows + 1) * element_bytes, element_bytes, dtype=numpy.int32))
    groups = max(1, total_bytes // ROW_GROUP_BYTES)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(groups):
            values = pyarrow.py_buffer(random.bytes(rows * element_bytes))
            data = pyarrow.Array.from_buffers(pyarrow.binary(), rows, [None, offsets, values])
            labels = pyarrow.array(numpy.zeros(rows, dtype=numpy.int32))
            writer.write_table(pyarrow.table([labels, data], schema=schema), row_group_size=rows)
    return groups * rows * element_bytes


def batches(path):
    """One row group after the other: over all at once, pyarrow keeps the whole file in memory."""
    file = pyarrow.parquet.ParquetFile(path)
    for group in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], columns=["data"])


def epoch(path):
    """Returns the bytes and the sum of their words."""
    total = words = 0
    for batch in batches(path):
        column = batch.column("data")
        data = numpy.frombuffer(column.buffers()[2], dtype=numpy.uint8)
        offsets = numpy.frombuffer(column.buffers()[1], dtype=numpy.int32)[column.offset :]
        begin, end = int(offsets[0]), int(offsets[len(column)])
        words += int(data[begin:end].view(numpy.uint64).sum(dtype=numpy.uint64))
        total += end - begin
    return total, words % (1 << 64)


def main():
    folder, element_bytes, total_bytes = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    path = folder / "elements.parquet"
    print(json.dumps({"bytes": write(path, element_bytes, total_bytes)}), flush=True)
    for _ in sys.stdin:
        start = time.monotonic_ns()
        total, words = epoch(path)
        print(json.dumps({"nanos": time.monotonic_ns() - start, "bytes": total, "sum": words}), flush=True)


if __name__ == "__main__":
    main()
