#!/usr/bin/env python3
"""Writes sources from the tables of the contract, which lie beside this file.

usage: make_tables.py OUTPUT...

layout.tsv becomes layout.h and LayoutTable.scala. The header checks itself: the compiler refuses a structure that it
would lay out in another way than the table says. types.tsv becomes formats.h, FormatTable.scala and the table in
docs/TYPES.md.
"""

import csv
import pathlib
import sys

LAYOUT = ["structure", "field", "offset", "bytes", "type", "writer", "meaning"]
TYPES = ["format", "values", "spark", "arrow", "numpy", "torch", "result", "since"]
NUMBERS = {"u32": ("uint32_t", 4), "i32": ("int32_t", 4), "u64": ("uint64_t", 8)}
ARRAYS = {"bytes": "uint8_t", "text": "char"}
# The layouts of block/schema.h.
OTHERS = {"bit": "BITS", "bytes": "VARIABLE", "views": "VIEWS", "list": "LIST", "struct": "STRUCT"}
# In types.tsv: there is none.
NONE = "–"
PAGE_HEAD = "| Spark's type | in a block (Arrow) | `block.numpy(name)` | in a batch (PyTorch) | of a result |"

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

FORMATS_HEADER = """\
/* Made from proto/types.tsv by proto/make_tables.py: the formats without parameters. */
#ifndef SUPPLY_FORMATS_H
#define SUPPLY_FORMATS_H

/** FORMAT(text, bytes of a value, its kind in DLPack) */
#define FIXED_FORMATS(FORMAT){fixed}

/** FORMAT(text, layout of block/schema.h) */
#define OTHER_FORMATS(FORMAT){others}

#endif
"""

FORMAT_TABLE = """\
package supply.protocol

/** Made from proto/types.tsv: the formats without parameters. */
private[supply] object FormatTable {{
  /** Bytes of a value, if all have as many. */
  val bytes: Map[String, Int] = Map({bytes})

  /** Spark's type of a result. */
  val results: Map[String, String] = Map({results})

  /** Formats whose columns in Spark have the same type, and Spark's first version that writes them. */
  val supplied: Map[String, String] = Map({supplied})
}}
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


def continued(lines):
    """Lines of a macro."""
    return "".join(f" \\\n    {line}" for line in lines)


def layout_header(rows):
    found = structures_of(rows)
    constants = [f"#define {row['field']} {row['offset']} /**< {row['meaning']} */" for row in found["constant"]]
    structures = {}
    lines = [line for name in found if name != "constant" for line in structure(name, found[name], structures)]
    names = [f'"{row["structure"]}.{row["field"]}"' for row in rows]
    fields = [f"FIELD({name}, {row['offset']}, {row['bytes'].strip('-') or 0})" for name, row in zip(names, rows)]
    lines += [
        "/** FIELD(name, offset, bytes) for each row of the table. */",
        f"#define LAYOUT(FIELD){continued(fields)}",
    ]
    return "\n".join([LAYOUT_HEADER, *constants, "", *lines, "", "#endif", ""])


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


def bytes_of(row):
    """Of a value. 0: they differ, or are no bytes."""
    bits = row["values"].lstrip("uintfloa")
    return int(bits) // 8 if bits.isdigit() else 0


def plain_formats(rows):
    """The first row of each format without parameters."""
    found = {}
    for row in rows:
        if not row["format"].startswith(("d:", "+w:")):
            found.setdefault(row["format"], row)
    return found


def formats_header(rows):
    kinds = {"i": "Int", "u": "UInt", "f": "Float"}
    formats = [(form, row["values"], bytes_of(row)) for form, row in plain_formats(rows).items()]
    return FORMATS_HEADER.format(
        fixed=continued(f'FORMAT("{form}", {size}, {kinds[values[0]]})' for form, values, size in formats if size),
        others=continued(f'FORMAT("{form}", {OTHERS[values]})' for form, values, size in formats if not size),
    )


def format_table(rows):
    formats = plain_formats(rows)
    results = [row for form, row in formats.items() if row["result"] != NONE and not form.startswith("+")]
    pairs = {
        "bytes": [f'"{form}" -> {bytes_of(row)}' for form, row in formats.items() if bytes_of(row)],
        "results": [f'"{row["format"]}" -> "{row["result"]}"' for row in results],
        "supplied": [f'"{row["format"]}" -> "{row["since"]}"' for row in results if row["spark"] == row["result"]],
    }
    return FORMAT_TABLE.format(**{name: ", ".join(each) for name, each in pairs.items()})


def page_table(rows):
    oldest = rows[0]["since"]
    lines = [PAGE_HEAD, "|---|---|---|---|---|"]
    for row in rows:
        since = "" if row["since"] == oldest else f" (Spark {row['since']})"
        if row["spark"] != NONE:
            lines.append(f"| {' | '.join([row['spark'] + since, *(row[name] for name in TYPES[3:-1])])} |")
    return "\n".join(lines)


# Of each output its table, the columns of that, and what makes the text of the rows.
MADE = {
    "layout.h": ("layout.tsv", LAYOUT, layout_header),
    "LayoutTable.scala": ("layout.tsv", LAYOUT, layout_table),
    "formats.h": ("types.tsv", TYPES, formats_header),
    "FormatTable.scala": ("types.tsv", TYPES, format_table),
    "TYPES.md": ("types.tsv", TYPES, page_table),
}


def rows_of(table, columns):
    with open(pathlib.Path(__file__).parent / table, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if reader.fieldnames != columns:
            raise ValueError(f"the columns must be {' '.join(columns)}")
        return list(reader)


def write(path):
    table, columns, make = MADE[path.name]
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        text = make(rows_of(table, columns))
    except ValueError as error:
        sys.exit(f"{table}: {error}")
    if path.suffix == ".md":
        above, _, rest = before.partition(PAGE_HEAD)
        text = above + text + rest[rest.index("\n\n") :]
    if text != before:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    for output in sys.argv[1:]:
        write(pathlib.Path(output))
