"""LMDBs of Datums for the tests, and an independent reader of them: py-lmdb and protobuf."""

import collections
import random
import struct
import zlib

import datum_pb2
import lmdb

# liblmdb's longest key.
KEY_BYTES_MAX = 511


def datum(data=b"", label=0, channels=0, height=0, width=0, **fields):
    return datum_pb2.Datum(data=data, label=label, channels=channels, height=height, width=width, **fields)


def numbered(count, bytes_of=lambda number: 48, seed=0):
    """`count` elements under Caffe's keys, with random data of bytes_of(number) bytes."""
    generator = random.Random(seed)
    return [
        (b"%08d" % number, datum(generator.randbytes(bytes_of(number)), number % 10, 1, 1, bytes_of(number)))
        for number in range(count)
    ]


def write_values(folder, values, map_size=None):
    """An LMDB of (key, value) pairs. With map_size, its largest size, the pairs may be an iterator."""
    map_size = map_size or (1 << 20) + 4 * sum(len(key) + len(value) for key, value in values)
    with lmdb.open(str(folder), map_size=map_size) as environment, environment.begin(write=True) as transaction:
        for key, value in values:
            assert transaction.put(key, value, overwrite=False)
    return folder


def write(folder, elements):
    """An LMDB of (key, Datum) pairs."""
    return write_values(folder, [(key, element.SerializeToString()) for key, element in elements])


def printable(key):
    """A key as supply-cat prints it."""
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x5C else f"\\x{byte:02x}" for byte in key)


def line(epoch, key, element):
    """An element as supply-cat prints it."""
    data = element.data
    if not data and element.float_data:
        data = struct.pack(f"<{len(element.float_data)}f", *element.float_data)
    fields = (epoch, printable(key), element.label, element.channels, element.height, element.width)
    return "\t".join(map(str, (*fields, int(element.encoded), len(data), f"{zlib.crc32(data):08x}")))


def expected_lines(path, epochs=1):
    """The lines that all ranks together must print, as a multiset, according to py-lmdb and protobuf."""
    with lmdb.open(str(path), readonly=True, lock=False, subdir=path.is_dir()) as database, database.begin() as reader:
        elements = [(key, datum_pb2.Datum.FromString(value)) for key, value in reader.cursor()]
    return collections.Counter(line(epoch, key, element) for key, element in elements for epoch in range(epochs))
