"""
Ways from Spark to Python that people use today, on the elements of an LMDB that a DataFrame holds in memory.

It does one round for each line of JSON on stdin, and answers each with one. This process is the rank: it reads all
bytes.
"""

import json
import os
import shutil
import sys
import time
import zlib

import numpy
import pyarrow
import pyarrow.dataset
import session


def dataframe(spark, folder, partitions):
    """Persists the LMDB's elements, before anything is timed."""
    made = spark.read.format("lmdb").option("partitions", partitions).load(folder).persist()
    made.count()
    return made


class Reader:
    """Reads every byte of the elements and counts them."""

    def __init__(self, verify):
        self.verify = verify
        self.elements = self.bytes = self.crc_sum = self.sum = 0
        self.first = None

    def take(self, data):
        if self.first is None:
            self.first = time.monotonic_ns()
        view = memoryview(data)
        whole = len(view) // 8 * 8
        self.sum += int(numpy.frombuffer(view[:whole], dtype=numpy.uint64).sum(dtype=numpy.uint64)) + sum(view[whole:])
        self.elements += 1
        self.bytes += len(view)
        if self.verify:
            self.crc_sum += zlib.crc32(view)

    def take_column(self, column):
        """An Arrow column of bytes, without a copy."""
        for chunk in column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]:
            for value in chunk:
                self.take(value.as_buffer())


def parquet(frame, folder, reader):
    shutil.rmtree(folder, ignore_errors=True)
    frame.write.parquet(folder, compression="none")
    for batch in pyarrow.dataset.dataset(folder, format="parquet").to_batches(batch_size=64):
        reader.take_column(batch.column("data"))


def arrow_stream(frame, folder, reader):
    reader.take_column(frame.toArrow().column("data"))


def local_iterator(frame, folder, reader):
    for row in frame.toLocalIterator():
        reader.take(row.data)


WAYS = {"parquet": parquet, "arrow-stream": arrow_stream, "toLocalIterator": local_iterator}


def measure(frame, folder, way, verify):
    reader = Reader(verify)
    start = time.monotonic_ns()
    WAYS[way](frame, folder, reader)
    nanos = time.monotonic_ns() - start
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "nanos": nanos,
        "first_nanos": reader.first - start,
        "received": {"elements": reader.elements, "bytes": reader.bytes, "crc_sum": reader.crc_sum % (1 << 64)},
    }


def main():
    local_dir, jar, lmdb_folder, shared_folder, heap_mib, partitions = sys.argv[1:]
    # Batches of the default size would take 2 GB and more.
    settings = {
        "spark.jars": jar,
        "spark.sql.inMemoryColumnarStorage.batchSize": "64",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    }
    spark = session.start(local_dir, heap_mib, 1, settings)
    try:
        frame = dataframe(spark, lmdb_folder, partitions)
        print(json.dumps({"pid": os.getpid(), "jvm_pid": session.jvm_pid(spark)}), flush=True)
        for line in sys.stdin:
            print(json.dumps(measure(frame, os.path.join(shared_folder, "parquet"), **json.loads(line))), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
