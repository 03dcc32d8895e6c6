"""Columns of views (Arrow format vz): the values lie in a file that is not the pair's, for example in an LMDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from supply import _core, column_layout

if TYPE_CHECKING:
    from supply.block import Block

# Arguments of Column.strided_numpy() and strided_torch().
Strided = tuple[int, int, tuple[int, ...], int, int]


class ValuesInPlace:
    """The values of a column, which all have one length. It holds the block."""

    def __init__(self, block: Block, column: _core.Column, length: int) -> None:
        """length: in bytes."""
        self.column = column
        self._kind, self._bits, self.shape = column_layout.of_bytes(block, column, length)
        self.dtype = numpy.dtype(numpy.uint8 if self._bits == 8 else numpy.float32)

    def strided(self) -> Strided:
        """The array over all values. Raises ColumnError if there is none."""
        found = self.strided_part(0, self.column.element_count)
        if found is None:
            raise column_layout.refusal(
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
