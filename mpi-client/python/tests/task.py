"""The task's side of a pair, written from PROTOCOL.md, over the real mapped file and pipes.

Columns are Arrow arrays.
"""

import fcntl
import mmap
import os
import struct
import time

import pyarrow

from layout import CONSTANTS, FORMATS, SIZES, get, put, text

# Ends a test that hangs.
HANG_SECONDS = 60

# Bytes of a name that stands in its entry.
_SHORT_NAME = 127

# Of a type that no version of the contract has.
_UNKNOWN = "?"


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
        return text(self.memory, "mapped_file_header", "rank_failure")

    def write_schema(self, schema):
        entries = [entry for field in schema for entry in _entries(field)]
        image, texts = bytearray(len(entries) * SIZES["schema_entry"]), b""
        for index, fields in enumerate(entries):
            name = fields["name"].encode()
            if len(name) > _SHORT_NAME:
                fields = {**fields, "name": "", "name_offset": len(texts), "name_bytes": len(name)}
                texts += name + b"\0"
            put(image, "schema_entry", index * SIZES["schema_entry"], **fields)
        if len(entries) > CONSTANTS["SCHEMA_COLUMNS_MAX"] or texts:
            os.pwrite(self._file.fileno(), image + texts, self.header("file_bytes"))
            put(self.memory, "mapped_file_header", schema_bytes=len(image + texts))
        else:
            self.memory[CONSTANTS["SCHEMA_OFFSET"] : CONSTANTS["SCHEMA_OFFSET"] + len(image)] = bytes(image)
        put(self.memory, "mapped_file_header", schema_columns=len(entries))

    def supply(self, batch, epoch=0, partition=0, first_element=0, foreign_file=None):
        """Publishes a block with the values of a record batch (P1 to P4). A binary_view's stay in the file."""
        if self.header("schema_columns") == 0:
            self.write_schema(batch.schema)
        if foreign_file is not None:
            put(self.memory, "foreign_file", CONSTANTS["FOREIGN_FILES_OFFSET"], **foreign_file.entry)
            put(self.memory, "mapped_file_header", foreign_count=1)
        columns = [each for field, column in zip(batch.schema, batch.columns) for each in _with_children(field, column)]
        image = bytearray(_aligned(SIZES["block_header"] + len(columns) * SIZES["block_column"]))
        referenced = sum(map(_referenced_bytes, batch.columns))
        put(image, "block_header", column_count=len(columns), referenced_bytes=referenced)
        for index, column in enumerate(columns):
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


def has_numbers(kind):
    """Whether the data of a fixed list is its numbers. Others have a child: in these tests, if it is called element."""
    if not pyarrow.types.is_fixed_size_list(kind) or kind.value_field.name == "element":
        return False
    return FORMATS.get(str(kind.value_type), _UNKNOWN) in set("cCsSiIlLefg")


def _child_fields(kind):
    if pyarrow.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if pyarrow.types.is_map(kind):
        parts = pyarrow.struct([kind.key_field, kind.item_field])
        return [pyarrow.field("entries", parts, nullable=False)]
    is_list = pyarrow.types.is_list(kind) or pyarrow.types.is_fixed_size_list(kind) and not has_numbers(kind)
    return [kind.value_field] if is_list else []


def _children(column):
    kind = column.type
    if pyarrow.types.is_struct(kind):
        return [column.field(index) for index in range(kind.num_fields)]
    if pyarrow.types.is_map(kind):
        return [pyarrow.StructArray.from_arrays([column.keys, column.items], fields=[kind.key_field, kind.item_field])]
    return [column.values]


def _with_children(field, column):
    """The column, and after it all within it."""
    children = _child_fields(field.type)
    return [column] + [
        each
        for child, values in zip(children, _children(column) if children else [])
        for each in _with_children(child, values)
    ]


def _entries(field):
    """The fields of the schema's entries of a column, and of all within it."""
    kind, child = field.type, ""
    children = _child_fields(kind)
    if pyarrow.types.is_fixed_size_list(kind):
        form, child = f"+w:{kind.list_size}", FORMATS[str(kind.value_type)] if has_numbers(kind) else ""
    elif pyarrow.types.is_timestamp(kind):
        form = f"tsu:{kind.tz or ''}"
    elif pyarrow.types.is_decimal(kind):
        form = f"d:{kind.precision},{kind.scale}"
    elif children:
        form = "+s" if pyarrow.types.is_struct(kind) else "+m" if pyarrow.types.is_map(kind) else "+l"
    else:
        form = FORMATS.get(str(kind), _UNKNOWN)
    flags = CONSTANTS["COLUMN_NULLABLE"] if field.nullable else 0
    entry = {"name": field.name, "format": form, "child_format": child, "flags": flags, "children": len(children)}
    return [entry, *(below for child in children for below in _entries(child))]


def _buffers(column, foreign_file):
    if column.type == pyarrow.binary_view():
        return {"offsets": foreign_file.windows(), "data": foreign_file.views(column.to_pylist())}
    assert column.offset == 0, "a slice of an array"
    values = column.values if has_numbers(column.type) else column
    buffers = column.buffers()
    found = {} if buffers[0] is None else {"validity": bytes(buffers[0])[: -(-len(column) // 8)]}
    others = values.buffers()[1:]
    if pyarrow.types.is_struct(column.type) or pyarrow.types.is_fixed_size_list(column.type) and values is column:
        return found
    if pyarrow.types.is_list(column.type) or pyarrow.types.is_map(column.type):
        return {**found, "offsets": bytes(others[0] or b"\0" * 4)[: 4 * (len(column) + 1)]}
    names = ("offsets", "data") if len(others) == 2 else ("data",)
    return {
        **found,
        **{name: bytes(buffer or b"")[:size] for name, buffer, size in zip(names, others, _sizes(values, others))},
    }


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
