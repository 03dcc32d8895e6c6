"""A sealed result as a reader sees it, written from PROTOCOL.md."""

import pathlib
import struct

import pyarrow

from layout import CONSTANTS, FORMATS, SIZES, get, text

# As pyarrow calls them; it has no intervals of months.
_NAMES = {form: name for name, form in FORMATS.items()} | {"tiM": "int32"}


def _field(memory, index):
    """The field of an entry, and the index after its children."""
    wide = get(memory, "mapped_file_header", "schema_bytes")
    schema = CONSTANTS["RING_OFFSET" if wide else "SCHEMA_OFFSET"]
    at = schema + index * SIZES["schema_entry"]
    name, form, child = (text(memory, "schema_entry", name, at) for name in ("name", "format", "child_format"))
    if get(memory, "schema_entry", "name_bytes", at):
        texts = schema + get(memory, "mapped_file_header", "schema_columns") * SIZES["schema_entry"]
        begin = texts + get(memory, "schema_entry", "name_offset", at)
        name = memory[begin : memory.index(b"\0", begin)].decode()
    children = []
    index += 1
    for _ in range(get(memory, "schema_entry", "children", at)):
        field, index = _field(memory, index)
        children.append(field)
    if form.startswith("+w:"):
        kind = pyarrow.list_(
            children[0] if children else pyarrow.field("numbers", pyarrow.type_for_alias(_NAMES[child]), False),
            int(form[3:]),
        )
    elif form == "+l":
        kind = pyarrow.list_(children[0])
    elif form == "+s":
        kind = pyarrow.struct(children)
    elif form == "+m":
        kind = pyarrow.map_(*(field.type for field in children[0].type))
    elif form.startswith("tsu:"):
        kind = pyarrow.timestamp("us", form[4:] or None)
    elif form.startswith("d:"):
        kind = pyarrow.decimal128(*map(int, form[2:].split(",")))
    else:
        kind = pyarrow.type_for_alias(_NAMES[form])
    return pyarrow.field(name, kind, get(memory, "schema_entry", "flags", at) == CONSTANTS["COLUMN_NULLABLE"]), index


def _array(block, index, kind, rows):
    """The array of an entry, and the index after its children."""
    at = SIZES["block_header"] + index * SIZES["block_column"]
    index += 1

    def buffer(name):
        size, offset = (get(block, "block_column", f"{name}_{part}", at) for part in ("bytes", "offset"))
        return pyarrow.py_buffer(block[offset : offset + size]) if size else None

    validity, offsets, data = buffer("validity"), buffer("offsets"), buffer("data") or pyarrow.py_buffer(b"")
    if pyarrow.types.is_struct(kind):
        children = []
        for field in kind:
            child, index = _array(block, index, field.type, rows)
            children.append(child)
        return pyarrow.Array.from_buffers(kind, rows, [validity], children=children), index
    if pyarrow.types.is_fixed_size_list(kind):
        if kind.value_field.name == "numbers":
            child = pyarrow.Array.from_buffers(kind.value_type, rows * kind.list_size, [None, data])
        else:
            child, index = _array(block, index, kind.value_type, rows * kind.list_size)
        return pyarrow.Array.from_buffers(kind, rows, [validity], children=[child]), index
    if pyarrow.types.is_list(kind) or pyarrow.types.is_map(kind):
        below = kind.value_type if pyarrow.types.is_list(kind) else pyarrow.struct([kind.key_field, kind.item_field])
        child, index = _array(block, index, below, struct.unpack_from("<i", offsets, 4 * rows)[0])
        return pyarrow.Array.from_buffers(kind, rows, [validity, offsets], children=[child]), index
    return pyarrow.Array.from_buffers(kind, rows, [validity, *([offsets] if offsets else []), data]), index


def read_result(path):
    """The table of a result, with a chunk for each block."""
    memory = pathlib.Path(path).read_bytes()
    assert memory[:8] == b"SUPBLK\r\n"
    assert get(memory, "mapped_file_header", "sealed") == CONSTANTS["SEALED_COMPLETE"]
    assert get(memory, "mapped_file_header", "file_bytes") == len(memory)
    fields, index = [], 0
    while index < get(memory, "mapped_file_header", "schema_columns"):
        field, index = _field(memory, index)
        fields.append(field)
    schema = pyarrow.schema(fields)
    batches = []
    for number in range(get(memory, "mapped_file_header", "block_count")):
        at = get(memory, "mapped_file_header", "ring_offset") + number * get(
            memory, "mapped_file_header", "block_bytes"
        )
        block = memory[at : at + get(memory, "notification", "size", at)]
        rows = get(block, "notification", "element_count")
        arrays, index = [], 0
        for field in schema:
            array, index = _array(block, index, field.type, rows)
            arrays.append(array)
        batches.append(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
        batches[-1].validate(full=True)
    table = pyarrow.Table.from_batches(batches, schema)
    assert table.num_rows == get(memory, "mapped_file_header", "epoch_elements")
    return table


def abort_reason(path):
    """Why the rank has aborted the result of that sealed path."""
    memory = pathlib.Path(f"{path}.unsealed").read_bytes()
    assert get(memory, "mapped_file_header", "sealed") == CONSTANTS["SEALED_ABORTED"]
    return text(memory, "mapped_file_header", "rank_failure")
