"""Columns with columns in them: lists, structs and maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from spark_supplier import _core, column_layout
from spark_supplier.jagged import Jagged

MAP_PARTS = ("keys", "values")


def is_nested(column: _core.Column) -> bool:
    """Whether its values are no array of numbers, booleans, texts or bytes."""
    return column.format in ("+s", "+m") or is_list(column)


def is_list(column: _core.Column) -> bool:
    """Whether each value is a list of its own. Fixed lists of numbers or booleans are an array of more dimensions."""
    form = column.format
    return form == "+l" or (form.startswith("+w:") and not column.is_plain and column.leaf_format != "b")


def map_parts(column: _core.Column) -> Iterator[tuple[str, _core.Column]]:
    """The keys and the values of a map, each with its name."""
    [entries] = column.children()
    return zip(MAP_PARTS, entries.children())


def bounds(column: _core.Column) -> numpy.ndarray:
    """Where each list begins among the values in all lists, and the end of the last one."""
    offsets: numpy.ndarray | None = column.offsets()
    if offsets is not None:
        return offsets
    width = int(column.format[len("+w:") :])
    return numpy.arange(0, width * column.element_count + 1, width, dtype=numpy.int32)


def names(column: _core.Column) -> set[str]:
    """Those of the column and of all fields in it, as options have them."""
    return {column.name}.union(*map(names, column.children()))


def arrays(column: _core.Column, array: Callable[[_core.Column], Any], offsets: Callable[[numpy.ndarray], Any]) -> Any:
    """The values of a column: of what has columns in it, a dict or Jagged of their arrays."""
    if not is_nested(column):
        return array(column)
    if column.format == "+s":
        return {child.field: arrays(child, array, offsets) for child in column.children()}
    column_layout.refuse_nulls(column)
    places = offsets(bounds(column))
    if column.format == "+m":
        return {name: Jagged(arrays(child, array, offsets), places) for name, child in map_parts(column)}
    [child] = column.children()
    return Jagged(arrays(child, array, offsets), places)
