"""Fields of the header of a mapped file, at the offsets that proto/layout.tsv gives."""

import csv

from places import ROOT

with open(ROOT / "proto" / "layout.tsv", newline="") as table:
    _FIELDS = {
        row["field"]: (int(row["offset"]), int(row["bytes"]))
        for row in csv.DictReader(table, delimiter="\t")
        if row["structure"] == "mapped_file_header"
    }


def read(mapped_file, field):
    """The number in a field; 0 if the file does not exist yet."""
    offset, size = _FIELDS[field]
    try:
        with open(mapped_file, "rb") as file:
            file.seek(offset)
            return int.from_bytes(file.read(size), "little")
    except FileNotFoundError:
        return 0


def write(mapped_file, field, value):
    offset, size = _FIELDS[field]
    with open(mapped_file, "r+b") as file:
        file.seek(offset)
        file.write(value.to_bytes(size, "little"))
