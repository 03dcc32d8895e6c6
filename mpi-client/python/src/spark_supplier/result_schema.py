"""The schema of a result: of Arrow, or as Spark writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from spark_supplier import _core
from spark_supplier.errors import SupplyError

# Spark's names of types, and the format in a result.
_FORMATS = {
    "boolean": "b", "tinyint": "c", "byte": "c", "smallint": "s", "short": "s", "int": "i", "integer": "i",
    "bigint": "l", "long": "l", "float": "f", "real": "f", "double": "g", "string": "u", "binary": "z", "date": "tdD",
    "timestamp": "tsu:UTC", "timestamp_ntz": "tsu:", "variant": "u",
}  # fmt: skip

# `name` or name; its type, and NOT NULL. A backquote within backquotes stands twice, as in Spark.
_COLUMN = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|(\w+))(?:\s*:?\s+(interval\s+[a-z]+(?:\s+to\s+[a-z]+)?|string\s+collate\s+\w+|[a-z_]+(?:\s*[(<].*[)>])?)(\s+not\s+null)?)?\s*",
    re.IGNORECASE | re.DOTALL,
)
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
# Types with parameters that a result does not keep.
_FAMILIES = {
    re.compile(r"interval\s+(day|hour|minute|second)\b.*", re.IGNORECASE): "tDu",
    re.compile(r"interval\s+(year|month)\b.*", re.IGNORECASE): "tiM",
    re.compile(r"time\s*(\(\s*\d\s*\))?", re.IGNORECASE): "ttn",
    re.compile(r"(var)?char\s*\(\s*\d+\s*\)|string\s+collate\s+\w+", re.IGNORECASE): "u",
}
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
# Of a struct: its fields have a colon and no space.
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*:\s*(.+?)(\s+not\s+null)?\s*", re.IGNORECASE | re.DOTALL)


def fields_of(schema: Any) -> list[_core.ResultField]:
    """The fields of anything with __arrow_c_schema__, or of a text as "id long not null, vector array<float>"."""
    if hasattr(schema, "__arrow_c_schema__"):
        return _core.result_fields(schema.__arrow_c_schema__())
    if isinstance(schema, str):
        return _fields_of_text(schema)
    if isinstance(schema, list):
        # Those of another result.
        return schema
    raise SupplyError(
        f"{type(schema).__name__} is no schema: pass a pyarrow.Schema, or a text as 'id long not null, score float'"
    )


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
    quoted = name.replace("`", "``")
    return f"`{quoted}` {kind}{'' if is_nullable else ' not null'}"


def _fields_of_text(text: str) -> list[_core.ResultField]:
    fields: list[_core.ResultField] = []
    for name, kind, is_nullable in _columns_of(text):
        if kind is None:
            raise _no_column(text, name)
        fields.append(_field_of(name, name, kind, is_nullable))
    return fields


def _columns_of(text: str) -> Iterator[tuple[str, str | None, bool]]:
    """Name, type, and whether it may be null, of each column."""
    for part in _parts(text):
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise _no_column(text, part.strip())
        yield _name_of(found), found[3], found[4] is None


def _name_of(found: re.Match[str]) -> str:
    return found[1].replace("``", "`") if found[1] else found[2]


def _parts(text: str) -> Iterator[str]:
    """What commas separate, but not those in brackets and backquotes."""
    depth, begin, is_quoted = 0, 0, False
    for at, each in enumerate(text):
        is_quoted ^= each == "`"
        if is_quoted:
            continue
        depth += (each in "<(") - (each in ">)")
        if each == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:]


def _no_column(text: str, part: str) -> SupplyError:
    return SupplyError(
        f"schema '{text}': '{part}' is no column: write it as in 'id long not null, score float, "
        "vector array<float>, amount decimal(10,2)'"
    )


def _field_of(path: str, name: str, kind: str, is_nullable: bool) -> _core.ResultField:
    """path: its name with those around it, for errors."""
    kind = kind.strip()
    decimal, nested = _DECIMAL.fullmatch(kind), _NESTED.fullmatch(kind)
    if decimal:
        return name, f"d:{decimal[1]},{decimal[2]}", "", is_nullable, []
    form = _FORMATS.get(kind.lower()) or next((f for family, f in _FAMILIES.items() if family.fullmatch(kind)), None)
    if form is not None:
        return name, form, "", is_nullable, []
    parts = list(_parts(nested[2])) if nested else []
    outer = nested[1].lower() if nested else ""
    if outer == "array" and len(parts) == 1:
        return name, "+l", "", is_nullable, [_field_of(path, "item", parts[0], True)]
    if outer == "map" and len(parts) == 2:
        both = [_field_of(f"{path}.keys", "key", parts[0], False), _field_of(f"{path}.values", "value", parts[1], True)]
        return name, "+m", "", is_nullable, [("entries", "+s", "", False, both)]
    found = [_FIELD.fullmatch(part) for part in parts] if outer == "struct" else []
    if found and all(found):
        fields = [
            _field_of(f"{path}.{_name_of(field)}", _name_of(field), field[3], field[4] is None)
            for field in found
            if field is not None
        ]
        return name, "+s", "", is_nullable, fields
    raise SupplyError(
        f"column '{path}' has the type '{kind}', which results do not know: {', '.join(_FORMATS)}, decimal(P,S), "
        "array<TYPE>, map<TYPE,TYPE>, struct<NAME:TYPE,...>"
    )
