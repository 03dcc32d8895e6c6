"""Paths in the checkout, and the fields of the contract's structures from proto/layout.tsv."""

import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
# PySpark's environment, and the jar that it loads.
SPARK_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
JAR = ROOT / "spark-supplier" / "target" / "spark-supplier.jar"

with open(ROOT / "proto" / "layout.tsv", newline="") as _table:
    _ROWS = list(csv.DictReader(_table, delimiter="\t"))

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


def put(memory, structure, at=0, **values):
    """Stores numbers or texts in fields of the structure at offset `at`."""
    for field, value in values.items():
        offset, size = _FIELDS[structure, field]
        stored = value.encode().ljust(size, b"\0") if isinstance(value, str) else value.to_bytes(size, "little")
        assert len(stored) == size, (field, value)
        memory[at + offset : at + offset + size] = stored


def offset_of(structure, field):
    return _FIELDS[structure, field][0]
