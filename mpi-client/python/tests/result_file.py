"""A sealed result as a reader sees it, written from PROTOCOL.md."""

import pathlib

import pyarrow

from layout import CONSTANTS, SIZES, get

_TYPES = {
    "c": pyarrow.int8(), "C": pyarrow.uint8(), "s": pyarrow.int16(), "S": pyarrow.uint16(), "i": pyarrow.int32(),
    "I": pyarrow.uint32(), "l": pyarrow.int64(), "L": pyarrow.uint64(), "f": pyarrow.float32(), "g": pyarrow.float64(),
    "tdD": pyarrow.date32(), "b": pyarrow.bool_(), "z": pyarrow.binary(), "u": pyarrow.string(),
}  # fmt: skip


def _text(memory, offset):
    return memory[offset:].split(b"\0", 1)[0].decode()


def _field(memory, index):
    at = CONSTANTS["SCHEMA_OFFSET"] + index * SIZES["schema_entry"]
    name, form, child = _text(memory, at), _text(memory, at + 128), _text(memory, at + 160)
    if form.startswith("+w:"):
        kind = pyarrow.list_(_TYPES[child], int(form[3:]))
    elif form.startswith("tsu:"):
        kind = pyarrow.timestamp("us", form[4:] or None)
    elif form.startswith("d:"):
        kind = pyarrow.decimal128(*map(int, form[2:].split(",")))
    else:
        kind = _TYPES[form]
    return pyarrow.field(name, kind, get(memory, "schema_entry", "flags", at) == CONSTANTS["COLUMN_NULLABLE"])


def _array(block, at, kind, rows):
    def buffer(name):
        size, offset = (get(block, "block_column", f"{name}_{part}", at) for part in ("bytes", "offset"))
        return pyarrow.py_buffer(block[offset : offset + size]) if size else None

    validity, data = buffer("validity"), buffer("data") or pyarrow.py_buffer(b"")
    if pyarrow.types.is_fixed_size_list(kind):
        child = pyarrow.Array.from_buffers(kind.value_type, rows * kind.list_size, [None, data])
        return pyarrow.Array.from_buffers(kind, rows, [validity], children=[child])
    offsets = buffer("offsets")
    return pyarrow.Array.from_buffers(kind, rows, [validity, *([offsets] if offsets else []), data])


def read_result(path):
    """The table of a result, with a chunk for each block."""
    memory = pathlib.Path(path).read_bytes()
    assert memory[:8] == b"SUPBLK\r\n"
    assert get(memory, "mapped_file_header", "sealed") == CONSTANTS["SEALED_COMPLETE"]
    assert get(memory, "mapped_file_header", "file_bytes") == len(memory)
    schema = pyarrow.schema([_field(memory, i) for i in range(get(memory, "mapped_file_header", "schema_columns"))])
    batches = []
    for number in range(get(memory, "mapped_file_header", "block_count")):
        at = CONSTANTS["RING_OFFSET"] + number * get(memory, "mapped_file_header", "block_bytes")
        block = memory[at : at + get(memory, "notification", "size", at)]
        rows = get(block, "notification", "element_count")
        places = [SIZES["block_header"] + i * SIZES["block_column"] for i in range(len(schema))]
        arrays = [_array(block, place, field.type, rows) for place, field in zip(places, schema)]
        batches.append(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
        batches[-1].validate(full=True)
    table = pyarrow.Table.from_batches(batches, schema)
    assert table.num_rows == get(memory, "mapped_file_header", "epoch_elements")
    return table


def abort_reason(path):
    """Why the rank has aborted the result of that sealed path."""
    memory = pathlib.Path(f"{path}.unsealed").read_bytes()
    assert get(memory, "mapped_file_header", "sealed") == CONSTANTS["SEALED_ABORTED"]
    return _text(memory, 1280)
