#!/usr/bin/env python3
"""Writes what C, Scala and the documents have from a table of the contract.

usage: make_tables.py TABLE OUTPUT

layout.tsv becomes layout.h or LayoutTable.scala. The header checks itself: the compiler refuses a structure that it
would lay out in another way than the table says.
"""

import csv
import pathlib
import sys

LAYOUT = ["structure", "field", "offset", "bytes", "type", "writer", "meaning"]
NUMBERS = {"u32": ("uint32_t", 4), "i32": ("int32_t", 4), "u64": ("uint64_t", 8)}
ARRAYS = {"bytes": "uint8_t", "text": "char"}

LAYOUT_HEADER = """\
/* Made from proto/layout.tsv by proto/make_tables.py. PROTOCOL.md says what the fields mean. */
#ifndef SUPPLY_LAYOUT_H
#define SUPPLY_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The contract is little-endian; libsupply does not run on this machine."
#endif

#define MAGIC "SUPPLY\\r\\n"
#define BLOCK_FILE_MAGIC "SUPBLK\\r\\n"

/** As it stands in a header. */
#define VERSION ((uint32_t)(VERSION_MAJOR << 16 | VERSION_MINOR))
"""


def declaration(row, structures):
    """The declaration of one field. Raises ValueError if its type and size do not fit."""
    name, size = row["field"], int(row["bytes"])
    if row["type"] in ARRAYS:
        return f"{ARRAYS[row['type']]} {name}[{size}];"
    if row["type"] in NUMBERS:
        c_type, type_size = NUMBERS[row["type"]]
    elif row["type"] in structures:
        c_type, type_size = f"struct {row['type']}", structures[row["type"]]
    else:
        raise ValueError(f"{row['structure']}.{name}: the type '{row['type']}' is unknown")
    if size != type_size:
        raise ValueError(f"{row['structure']}.{name}: a {row['type']} has {type_size} bytes, not {size}")
    return f"{c_type} {name};"


def structure(name, rows, structures):
    """The lines of one structure and its assertions. Fills gaps between fields with `unused_OFFSET`."""
    fields, asserts, end = [], [], 0
    for row in rows:
        place = f"{name}.{row['field']}"
        offset = int(row["offset"])
        if offset < end:
            raise ValueError(f"{place}: offset {offset} lies within the field before it, which ends at {end}")
        if offset > end:
            fields.append(f"    uint8_t unused_{end}[{offset - end}];")
        if row["field"] == "SIZE":
            asserts.append(f'static_assert(sizeof(struct {name}) == {offset}, "layout.tsv: {place}");')
        else:
            fields.append(f"    {declaration(row, structures)} /**< {row['writer']}: {row['meaning']} */")
            asserts.append(
                f'static_assert(offsetof(struct {name}, {row["field"]}) == {offset}, "layout.tsv: {place}");'
            )
        end = offset + int(row["bytes"])
    if rows[-1]["field"] != "SIZE":
        raise ValueError(f"{name}: the last row must be SIZE")
    structures[name] = end
    return [f"struct {name} {{", *fields, "};", *asserts, ""]


def structures_of(rows):
    found = {"constant": []}
    for row in rows:
        found.setdefault(row["structure"], []).append(row)
    return found


def layout_header(rows):
    found = structures_of(rows)
    constants = [f"#define {row['field']} {row['offset']} /**< {row['meaning']} */" for row in found["constant"]]
    structures = {}
    lines = [line for name in found if name != "constant" for line in structure(name, found[name], structures)]
    return "\n".join([LAYOUT_HEADER, *constants, "", *lines, "#endif", ""])


def scala_name(field):
    """Constants and sizes keep their names."""
    first, *others = [field] if field.isupper() else field.split("_")
    return "`sealed`" if field == "sealed" else first + "".join(map(str.capitalize, others))


def layout_table(rows):
    """Numbers have no type in Scala, so that the compiler puts their values in their place."""
    lines = ["package supply.protocol", "", "/** Made from proto/layout.tsv. */", "private[supply] trait LayoutTable {"]
    for name, fields in structures_of(rows).items():
        numbers = [f"    final val {scala_name(row['field'])} = {row['offset']}" for row in fields]
        lines += [f"  object {''.join(map(str.capitalize, name.split('_')))} {{", *numbers, "  }", ""]
    return "\n".join([*lines[:-1], "}", ""])


MADE = {"layout.h": (LAYOUT, layout_header), "LayoutTable.scala": (LAYOUT, layout_table)}


def main(table, output):
    path = pathlib.Path(output)
    columns, make = MADE[path.name]
    before = path.read_text(encoding="utf-8") if path.exists() else None
    with open(table, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if reader.fieldnames != columns:
            sys.exit(f"{table}: the columns must be {' '.join(columns)}")
        rows = list(reader)
    try:
        text = make(rows)
    except ValueError as error:
        sys.exit(f"{table}: {error}")
    if text != before:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
