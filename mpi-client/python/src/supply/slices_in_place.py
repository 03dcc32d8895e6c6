"""Values in place in the forms that a batch has. Each slice is copied once, and only if the batch needs a copy."""

from __future__ import annotations

import numpy
import torch

from supply import _core, column_layout
from supply.batch import Jagged
from supply.values_in_place import ValuesInPlace


class TensorSlice:
    """`count` values of one length, from `first` on."""

    def __init__(self, values: ValuesInPlace, first: int, count: int) -> None:
        self._values = values
        self._first = first
        self._count = count
        self.shape = (count, *values.shape)
        self.dtype = torch.uint8 if values.dtype == numpy.uint8 else torch.float32

    def __len__(self) -> int:
        return self._count

    def view(self) -> torch.Tensor:
        """The values in place if one tensor can hold them so, else a copy."""
        strided = self._values.strided_part(self._first, self._count)
        return self._values.column.strided_torch(*strided) if strided else self._gathered()

    def copy_to(self, to: torch.Tensor) -> None:
        """Stores the values in a contiguous tensor of that shape."""
        if to.dtype == self.dtype:
            self._values.column.gather(self._first, self._count, to.numpy())
        else:
            to.copy_(self.view())

    def _gathered(self) -> torch.Tensor:
        copy = torch.empty(self.shape, dtype=self.dtype)
        self.copy_to(copy)
        return copy


class JaggedSlice:
    """`count` values of any length, from `first` on."""

    def __init__(self, column: _core.Column, first: int, count: int) -> None:
        self._column = column
        self._first = first
        self._count = count

    def copy(self, pin: bool) -> Jagged:
        """A copy, with `pin` in pinned memory: one tensor cannot hold them in place."""
        offsets = torch.empty(self._count + 1, dtype=torch.int64, pin_memory=pin)
        offsets[0] = 0
        offsets[1:] = torch.from_numpy(column_layout.ends(self._column, self._first, self._count))
        values = torch.empty(int(offsets[-1]), dtype=torch.uint8, pin_memory=pin)
        self._column.gather(self._first, self._count, values.numpy())
        return Jagged(values, offsets)


class TensorsInPlace:
    """Values of one length of a block."""

    def __init__(self, values: ValuesInPlace) -> None:
        self._values = values

    def __getitem__(self, part: slice) -> TensorSlice:
        return TensorSlice(self._values, part.start, part.stop - part.start)

    def clone(self) -> torch.Tensor:
        """A copy of all values, as Tensor.clone()."""
        return torch.from_numpy(self._values.gathered())


class JaggedInPlace:
    """Values of any length of a block."""

    def __init__(self, column: _core.Column) -> None:
        self._column = column

    def __getitem__(self, part: slice) -> JaggedSlice:
        return JaggedSlice(self._column, part.start, part.stop - part.start)
