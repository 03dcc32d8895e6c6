"""Paths in the checkout, and the tables of the contract."""

import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
# PySpark's environment, and the jar that it loads.
SPARK_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
JAR = ROOT / "spark-supplier" / "target" / "spark-supplier.jar"


def _rows(table):
    with open(ROOT / "proto" / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


_ROWS = _rows("layout.tsv")
TYPES = _rows("types.tsv")
# The formats that Arrow has as a type without parameters, by the name of the type.
FORMATS = {row["arrow"]: row["format"] for row in reversed(TYPES) if not row["format"].startswith(("d:", "tsu:", "+"))}

_FIELDS = {
    (row["structure"], row["field"]): (int(row["offset"]), int(row["bytes"]))
    for row in _ROWS
    if row["structure"] != "constant" and row["field"] != "SIZE"
}
SIZES = {row["structure"]: int(row["offset"]) for row in _ROWS if row["field"] == "SIZE"}
CONSTANTS = {row["field"]: int(row["offset"]) for row in _ROWS if row["structure"] == "constant"}


def get(memory, structure, field, at=0):
    """The number in a field of the structure at offset `at`."""
    offset, size = _FIELDS[structure, field]
    return int.from_bytes(memory[at + offset : at + offset + size], "little")


def text(memory, structure, field, at=0):
    """The text in a field of the structure at offset `at`."""
    offset, size = _FIELDS[structure, field]
    return memory[at + offset : at + offset + size].split(b"\0")[0].decode()


def put(memory, structure, at=0, **values):
    """Stores numbers or texts in fields of the structure at offset `at`."""
    for field, value in values.items():
        offset, size = _FIELDS[structure, field]
        stored = value.encode().ljust(size, b"\0") if isinstance(value, str) else value.to_bytes(size, "little")
        assert len(stored) == size, (field, value)
        memory[at + offset : at + offset + size] = stored


def offset_of(structure, field):
    return _FIELDS[structure, field][0]
