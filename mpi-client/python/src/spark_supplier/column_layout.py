"""Type and shape of an array over the values of a column, also of values in place, and of what has columns in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Union

import numpy

from spark_supplier import _core
from spark_supplier.errors import ColumnError
from spark_supplier.jagged import Jagged

if TYPE_CHECKING:
    from spark_supplier.block import Block


# DLPack's type codes, and bits.
_INT, _UINT, _FLOAT = 0, 1, 2
_FLOAT32_BYTES = 4
_ARROW = "use Arrow: pyarrow.record_batch(block)"

Layout = Union[tuple[int, int, tuple[int, ...], int], tuple[()]]


def refusal(column: _core.Column, why: str) -> ColumnError:
    """The exception for a column that an array cannot hold."""
    return ColumnError(f"column '{column.name}' of block {column.sequence} (Arrow format '{column.format}'): {why}")


def of(block: Block, column: _core.Column, nulls: bool = False) -> Layout:
    """DLPack's type code, bits of a value, shape, and the offset of the first value in the column's data, in bytes.

    Nothing for numbers and fixed lists of them: the extension module knows their layout. nulls: the caller replaces the
    values of nulls, which are any.
    """
    if not nulls:
        refuse_nulls(column)
    form = column.leaf_format
    if form == "tdD" or form.startswith("d:"):
        raise refusal(column, f"arrays have no such type without a copy: {_ARROW}")
    if column.is_plain:
        return ()
    if form == "z":
        return _bytes_layout(block, column)
    if form == "b":
        raise refusal(column, f"booleans are bits, which an array cannot address: copy=True, or {_ARROW}")
    raise refusal(column, f"its values differ in length, which an array cannot hold: {without_array(column)}")


def bits(column: _core.Column, nulls: bool = False) -> numpy.ndarray:
    """A column of booleans, or of fixed lists of them, copied. nulls: as for of()."""
    if not nulls:
        refuse_nulls(column)
    shape = column.shape()
    return unpacked(column.numpy(_UINT, 8, (column.data_bytes,), 0), math.prod(shape)).reshape(shape)


def unpacked(bits: numpy.ndarray, count: int) -> numpy.ndarray:
    """The first `count` bits, in the order of the Arrow format, as booleans."""
    return numpy.unpackbits(bits, count=count, bitorder="little").astype(bool)


def refuse_nulls(column: _core.Column) -> None:
    """Raises ColumnError if an element has no value, or a number of a fixed list is none."""
    if has_nulls(column):
        raise refusal(column, f"{nulls_of(column)}, which an array cannot hold: {_ARROW}")


def has_nulls(column: _core.Column) -> bool:
    return bool(column.null_count or column.nulls_within())


def nulls_of(column: _core.Column, of_what: str = "") -> str:
    """How many values are null, for a message."""
    if column.null_count:
        return f"{column.null_count} of {column.element_count} elements{of_what} are null"
    return f"{column.nulls_within()} of the values in its lists are null"


def without_array(column: _core.Column) -> str:
    """How to read bytes that an array cannot hold."""
    return f"block.views({column.name!r}), or {_ARROW}"


def ends(column: _core.Column, first: int, count: int) -> numpy.ndarray:
    """The place of each value's end, if these values of bytes or text stand one after the other."""
    places = numpy.empty(count, numpy.int64)
    column.ends(first, places)
    return places


def common_length(column: _core.Column, otherwise: str) -> int:
    """The length of all values of bytes. otherwise: what the user can do if they differ."""
    lengths = numpy.diff(ends(column, 0, column.element_count), prepend=0)
    if (lengths != lengths[0]).any():
        range_of_lengths = f"from {lengths.min()} to {lengths.max()} bytes"
        raise refusal(column, f"its values differ in length, {range_of_lengths}: {otherwise}")
    return int(lengths[0])


def of_bytes(block: Block, column: _core.Column, length: int) -> tuple[int, int, tuple[int, ...]]:
    """DLPack's type code, bits of a number, and shape, of each value of a column whose values have this length."""
    shape = _datum_shape(block) if column.name == "data" else None
    if shape and length == math.prod(shape):
        return _UINT, 8, shape
    if shape and length == _FLOAT32_BYTES * math.prod(shape):
        return _FLOAT, 32, shape
    return _UINT, 8, (length,)


def _bytes_layout(block: Block, column: _core.Column) -> Layout:
    begin = int(column.offsets()[0])
    length = common_length(column, without_array(column))
    kind, bits, shape = of_bytes(block, column, length)
    if bits > 8 and begin % _FLOAT32_BYTES:
        kind, bits, shape = _UINT, 8, (length,)
    return kind, bits, (column.element_count, *shape), begin


def _datum_shape(block: Block) -> tuple[int, ...] | None:
    """Channels, height and width, if all Datums of the block have the same and none is an encoded image."""
    names = ("channels", "height", "width")
    if not {*names, "encoded"} <= set(block.columns):
        return None
    sizes = [block.numpy(name) for name in names]
    shape = tuple(int(size[0]) for size in sizes)
    uniform = all((size == first).all() for size, first in zip(sizes, shape)) and min(shape) > 0
    return shape if uniform and not block.numpy("encoded", copy=True).any() else None


# Arguments of Column.strided_numpy() and strided_torch().
Strided = tuple[int, int, tuple[int, ...], int, int]


class ValuesInPlace:
    """The values of a column, which all have one length. It holds the block."""

    def __init__(self, block: Block, column: _core.Column, length: int) -> None:
        """length: in bytes."""
        self.column = column
        self._kind, self._bits, self.shape = of_bytes(block, column, length)
        self.dtype = numpy.dtype(numpy.uint8 if self._bits == 8 else numpy.float32)

    def strided(self) -> Strided:
        """The array over all values. Raises ColumnError if there is none."""
        found = self.strided_part(0, self.column.element_count)
        if found is None:
            raise refusal(
                self.column,
                "its values do not lie at equal distances in their file, with at most 64 KiB between two, or floats "
                "not at multiples of 4 bytes: "
                f"copy=True, or block.views({self.column.name!r})",
            )
        return found

    def strided_part(self, first: int, count: int) -> Strided | None:
        """The array over `count` values from `first` on, if they lie at equal, small distances and are aligned."""
        step = self.column.step(first, count, self.dtype.itemsize)
        return (self._kind, self._bits, (count, *self.shape), first, step) if step else None

    def gathered(self) -> numpy.ndarray:
        """A copy of all values."""
        copy = numpy.empty((self.column.element_count, *self.shape), self.dtype)
        self.column.gather(0, len(copy), copy)
        return copy


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
    refuse_nulls(column)
    places = offsets(bounds(column))
    if column.format == "+m":
        return {name: Jagged(arrays(child, array, offsets), places) for name, child in map_parts(column)}
    [child] = column.children()
    return Jagged(arrays(child, array, offsets), places)
