"""The data that benchmarks move: elements in Spark's memory, and LMDBs of Caffe Datums."""

import pathlib
import shutil
import sys
import zlib

from engine import machine
from engine.machine import BenchError

_SHAPES = {784: (1, 28, 28), 3 << 10: (3, 32, 32), 192 << 10: (3, 256, 256), 1 << 20: (1, 1024, 1024)}


# Each costs some 0.1 ms of an epoch, so less data must not mean smaller ones.
PARTITION_BYTES = 64 << 20


def partitions(data_bytes, options):
    """The number of partitions of a benchmark, which may have more pairs than data."""
    return max(max(options.pairs), data_bytes // PARTITION_BYTES)


def generate(spark, element_bytes, total_bytes, partitions):
    """Generates elements as Spark's open source, in batches that Spark caches. Returns their tally."""
    channels, height, width = _SHAPES.get(element_bytes, (1, 1, element_bytes))
    shape = {"channels": channels, "height": height, "width": width}
    return spark.run("generate", total_bytes=total_bytes, partitions=partitions, **shape)


DATA = machine.ROOT / "build" / "bench-data"
BATCH = 1000


def _datum():
    folder = machine.ROOT / "build" / "python"
    if not (folder / "datum_pb2.py").exists():
        raise BenchError(f"no {folder}/datum_pb2.py: run 'make build/python/datum_pb2.py'")
    sys.path.insert(0, str(folder))
    import datum_pb2

    return datum_pb2.Datum


def make_lmdb(channels, height, width, entries):
    """Returns the folder of an LMDB with `entries` Datums of random bytes, the same in every run."""
    import lmdb
    import numpy

    datum = _datum()
    folder = DATA / f"{channels}x{height}x{width}-{entries}"
    if folder.exists():
        return folder
    size = channels * height * width
    random = numpy.random.default_rng(0)
    unfinished = pathlib.Path(f"{folder}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with lmdb.open(str(unfinished), map_size=4 * entries * (size + 4096)) as environment:
        for first in range(0, entries, BATCH):
            with environment.begin(write=True) as transaction:
                for i in range(first, min(first + BATCH, entries)):
                    value = datum(label=i % 10, data=random.bytes(size), channels=channels, height=height, width=width)
                    transaction.put(b"%08d" % i, value.SerializeToString(), append=True)
        environment.sync(True)
    unfinished.rename(folder)
    return folder


def tally_lmdb(folder):
    """Counts the LMDB with py-lmdb and protobuf, independently of the Supplier. This also warms the page cache."""
    import lmdb

    datum = _datum()
    elements = size = crc_sum = 0
    with lmdb.open(str(folder), readonly=True, lock=False) as environment, environment.begin() as transaction:
        for _, value in transaction.cursor():
            data = datum.FromString(value).data
            elements += 1
            size += len(data)
            crc_sum += zlib.crc32(data)
    return {"elements": elements, "bytes": size, "crc_sum": crc_sum % (1 << 64)}
