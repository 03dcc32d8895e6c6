"""The schema of a result: of Arrow, or as Spark writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from supply import _core
from supply.errors import SupplyError

# Spark's names of types, and the format in a result.
_FORMATS = {
    "boolean": "b", "tinyint": "c", "byte": "c", "smallint": "s", "short": "s", "int": "i", "integer": "i",
    "bigint": "l", "long": "l", "float": "f", "real": "f", "double": "g", "string": "u", "binary": "z", "date": "tdD",
    "timestamp": "tsu:UTC", "timestamp_ntz": "tsu:",
}  # fmt: skip

# The name for messages: the first of the list, and numpy's for types that Spark does not have.
_NAMES = {
    **{form: name for name, form in reversed(_FORMATS.items())},
    "C": "uint8", "S": "uint16", "I": "uint32", "L": "uint64",
}  # fmt: skip

# `name` or name; its type, and NOT NULL.
_COLUMN = re.compile(
    r"\s*(?:`([^`]+)`|(\w+))(?:\s*:?\s+([a-z_]+(?:\(\s*\d+\s*,\s*\d+\s*\)|<\s*[a-z]+\s*>)?)"
    r"(\s+not\s+null)?)?\s*(?:,|$)",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_LIST = re.compile(r"array<\s*([a-z]+)\s*>")

# Spark's arrays do not say how many numbers they have.
_LIST_OF_ANY_LENGTH = "+w:?"


def fields_of(schema: Any) -> list[_core.ResultField]:
    """The fields of anything with __arrow_c_schema__, or of a text as "id long not null, vector array<float>"."""
    if hasattr(schema, "__arrow_c_schema__"):
        return _core.result_fields(schema.__arrow_c_schema__())
    if isinstance(schema, str):
        return _fields_of_text(schema)
    raise SupplyError(
        f"{type(schema).__name__} is no schema: pass a pyarrow.Schema, or a text as 'id long not null, score float'"
    )


def type_name(form: str, child: str = "") -> str:
    """A type as messages name it."""
    if form == _LIST_OF_ANY_LENGTH:
        return f"array<{type_name(child)}>"
    if form.startswith("+w:"):
        return f"array<{type_name(child)}> of {form[3:]}"
    if form.startswith("d:"):
        return f"decimal({form[2:]})"
    if form.startswith("tsu:"):
        return f"timestamp in {form[4:]}" if form[4:] else "timestamp_ntz"
    return _NAMES.get(form, form)


def is_complete(fields: list[_core.ResultField]) -> bool:
    """Whether all lists have a length."""
    return all(form != _LIST_OF_ANY_LENGTH for _, form, _, _ in fields)


def completed(fields: list[_core.ResultField], of_batch: list[_core.ResultField]) -> list[_core.ResultField]:
    """The fields, with the lengths of lists from those of a batch. A list that it has not gets the length 1."""
    formats = {name: form for name, form, _, _ in of_batch if form.startswith("+w:")}
    return [
        (name, formats.get(name, "+w:1") if form == _LIST_OF_ANY_LENGTH else form, child, nullable)
        for name, form, child, nullable in fields
    ]


def with_types(text: str, columns: Mapping[str, str]) -> str:
    """The same text, where each column has a type. columns: those that need none, with their types."""
    parts = []
    for name, kind, is_nullable in _columns_of(text):
        if kind is None and name not in columns:
            raise SupplyError(
                f"'{name}' has no type, so it must be a column of df that ranks get ({', '.join(columns)}): add it to "
                "columns, or write its type"
            )
        parts.append(columns[name] if kind is None else column_text(name, kind, is_nullable))
    return ", ".join(parts)


def column_text(name: str, kind: str, is_nullable: bool) -> str:
    """A column of a schema's text."""
    return f"`{name}` {kind}{'' if is_nullable else ' not null'}"


def _fields_of_text(text: str) -> list[_core.ResultField]:
    fields = []
    for name, kind, is_nullable in _columns_of(text):
        if kind is None:
            raise _no_column(text, name)
        fields.append((name, *_format_of(name, kind), is_nullable))
    return fields


def _columns_of(text: str) -> Iterator[tuple[str, str | None, bool]]:
    """Name, type, and whether it may be null, of each column."""
    at = 0
    while at < len(text.rstrip()):
        found = _COLUMN.match(text, at)
        if found is None:
            raise _no_column(text, text[at:].strip())
        yield found[1] or found[2], found[3] and found[3].lower(), found[4] is None
        at = found.end()


def _no_column(text: str, part: str) -> SupplyError:
    return SupplyError(
        f"schema '{text}': '{part}' is no column: write it as in 'id long not null, score float, "
        "vector array<float>, amount decimal(10,2)'"
    )


def _format_of(name: str, kind: str) -> tuple[str, str]:
    decimal, numbers = _DECIMAL.fullmatch(kind), _LIST.fullmatch(kind)
    if decimal:
        return f"d:{decimal[1]},{decimal[2]}", ""
    if numbers and _FORMATS.get(numbers[1], "") in tuple("csilfg"):
        return _LIST_OF_ANY_LENGTH, _FORMATS[numbers[1]]
    if kind in _FORMATS:
        return _FORMATS[kind], ""
    raise SupplyError(
        f"column '{name}' has the type '{kind}', which results do not know: {', '.join(_FORMATS)}, decimal(P,S), "
        "array<NUMBER>"
    )
