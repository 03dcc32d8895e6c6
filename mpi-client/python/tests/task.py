"""The task's side of a pair, written from PROTOCOL.md, over the real mapped file and pipes.

Columns are Arrow arrays.
"""

import fcntl
import mmap
import os
import struct
import time

import pyarrow

from layout import CONSTANTS, SIZES, get, put

# Ends a test that hangs.
HANG_SECONDS = 60

_FORMATS = {
    pyarrow.int8(): "c", pyarrow.uint8(): "C", pyarrow.int16(): "s", pyarrow.uint16(): "S", pyarrow.int32(): "i",
    pyarrow.uint32(): "I", pyarrow.int64(): "l", pyarrow.uint64(): "L", pyarrow.float32(): "f", pyarrow.float64(): "g",
    pyarrow.date32(): "tdD", pyarrow.bool_(): "b", pyarrow.binary(): "z", pyarrow.string(): "u",
    pyarrow.binary_view(): "vz",
}  # fmt: skip


def wait_until(what, condition):
    limit = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        assert time.monotonic() < limit, f"waited in vain for {what}"
        time.sleep(0.002)
    return found


def _aligned(size):
    unit = CONSTANTS["BUFFER_ALIGNMENT"]
    return -(-size // unit) * unit


class Task:
    """Attaches to a pair that is open (A1 to A5)."""

    def __init__(self, mapped_file, request_pipe, notification_pipe):
        self._file = open(mapped_file, "r+b")  # noqa: SIM115
        self.memory = mmap.mmap(self._file.fileno(), 0)
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, CONSTANTS["TASK_LOCK_BYTE"], 1, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, lock)
        self._requests = os.open(request_pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._notifications = os.open(notification_pipe, os.O_WRONLY | os.O_NONBLOCK)
        put(self.memory, "mapped_file_header", task_pid=os.getpid(), plan=0x77)

    def leave(self):
        os.close(self._notifications)
        os.close(self._requests)
        self.memory.close()
        self._file.close()

    def header(self, field):
        return get(self.memory, "mapped_file_header", field)

    def failure_of_rank(self):
        return self.memory[1280:2304].split(b"\0")[0].decode()

    def write_schema(self, schema):
        for index, field in enumerate(schema):
            kind, child = field.type, ""
            if pyarrow.types.is_fixed_size_list(kind):
                form, child = f"+w:{kind.list_size}", _FORMATS[kind.value_type]
            elif pyarrow.types.is_timestamp(kind):
                form = f"tsu:{kind.tz or ''}"
            elif pyarrow.types.is_decimal(kind):
                form = f"d:{kind.precision},{kind.scale}"
            else:
                form = _FORMATS.get(kind, "+l")
            at = CONSTANTS["SCHEMA_OFFSET"] + index * SIZES["schema_entry"]
            flags = CONSTANTS["COLUMN_NULLABLE"] if field.nullable else 0
            put(self.memory, "schema_entry", at, name=field.name, format=form, child_format=child, flags=flags)
        put(self.memory, "mapped_file_header", schema_columns=len(schema))

    def supply(self, batch, epoch=0, partition=0, first_element=0, foreign_file=None):
        """Publishes a block with the values of a record batch (P1 to P4). A binary_view's stay in the file."""
        if self.header("schema_columns") == 0:
            self.write_schema(batch.schema)
        if foreign_file is not None:
            put(self.memory, "foreign_file", CONSTANTS["FOREIGN_FILES_OFFSET"], **foreign_file.entry)
            put(self.memory, "mapped_file_header", foreign_count=1)
        image = bytearray(_aligned(SIZES["block_header"] + batch.num_columns * SIZES["block_column"]))
        referenced = sum(map(_referenced_bytes, batch.columns))
        put(image, "block_header", column_count=batch.num_columns, referenced_bytes=referenced)
        for index, column in enumerate(batch.columns):
            fields = {"null_count": column.null_count}
            for name, buffer in _buffers(column, foreign_file).items():
                fields.update({f"{name}_offset": len(image), f"{name}_bytes": len(buffer)})
                image += buffer.ljust(_aligned(len(buffer)), b"\0")
            put(image, "block_column", SIZES["block_header"] + index * SIZES["block_column"], **fields)
        self._publish("NOTIFICATION_BLOCK", image, batch.num_rows, epoch, partition, first_element)

    def end_of_epoch(self, epoch=0):
        self._publish("NOTIFICATION_END_OF_EPOCH", bytearray(SIZES["block_header"]), 0, epoch)

    def end_of_data(self, epoch=0):
        self._publish("NOTIFICATION_END_OF_DATA", bytearray(SIZES["block_header"]), 0, epoch)

    def confirm_end(self):
        """Waits for the last release and confirms the end (E1 and E3)."""
        wait_until("the rank's last release", lambda: self.header("released") == self.header("published"))
        put(self.memory, "mapped_file_header", end_seen=1)

    def fail(self, text):
        put(self.memory, "mapped_file_header", task_failure=text)
        self._notify(kind=CONSTANTS["NOTIFICATION_FAILURE"])

    def _publish(self, kind, image, elements, epoch, partition=0, first_element=0):
        sequence, slots, slot = self.header("published"), self.header("block_count"), self.header("block_bytes")
        assert len(image) <= slot, "the block is larger than a slot"
        wait_until("credit", lambda: sequence < self.header("released") + slots)
        offset = self.header("ring_offset") + sequence % slots * slot
        fields = {
            "kind": CONSTANTS[kind],
            "element_count": elements,
            "sequence": sequence,
            "epoch": epoch,
            "partition": partition,
            "first_element": first_element,
            "offset": offset,
            "size": len(image),
        }
        put(image, "notification", generation=self.header("generation"), **fields)
        self.memory[offset : offset + len(image)] = bytes(image)
        put(self.memory, "mapped_file_header", published=sequence + 1)
        self._notify(**fields)

    def _notify(self, **fields):
        notification = bytearray(SIZES["notification"])
        put(notification, "notification", generation=self.header("generation"), **fields)
        os.write(self._notifications, notification)


def _buffers(column, foreign_file):
    if column.type == pyarrow.binary_view():
        return {"offsets": foreign_file.windows(), "data": foreign_file.views(column.to_pylist())}
    values = column.values if pyarrow.types.is_fixed_size_list(column.type) else column
    validity, *others = column.buffers()[:1] + values.buffers()[1:]
    names = ("offsets", "data") if len(others) == 2 else ("data",)
    found = {name: bytes(buffer or b"")[:size] for name, buffer, size in zip(names, others, _sizes(values, others))}
    return found if validity is None else {"validity": bytes(validity)[: -(-len(column) // 8)], **found}


def _referenced_bytes(column):
    if column.type != pyarrow.binary_view():
        return 0
    return sum(len(value) for value in column.to_pylist() if len(value) > CONSTANTS["VIEW_INLINE_MAX"])


def _sizes(values, buffers):
    if len(buffers) == 2:
        offsets = struct.unpack_from(f"<{len(values) + 1}i", buffers[0])
        return [4 * (len(values) + 1), offsets[-1]]
    bits = values.type.bit_width * len(values)
    return [-(-bits // 8)]
