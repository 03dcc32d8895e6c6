"""The columns of a block as what batches are sliced from. Values in place are copied once, and only if need be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Union

import numpy
import torch

from spark_supplier import _core, column_layout
from spark_supplier.column_layout import ValuesInPlace
from spark_supplier.jagged import Jagged


class TensorSlice:
    """`count` values of one length, from `first` on."""

    def __init__(self, values: ValuesInPlace, first: int, count: int) -> None:
        self._values = values
        self._first = first
        self._count = count
        self.shape = (count, *values.shape)
        self.dtype = torch.uint8 if values.dtype == numpy.uint8 else torch.float32
        self.device = torch.device("cpu")

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

    def copy(self, pin: bool = False) -> Jagged:
        """A copy, with `pin` in pinned memory: one tensor cannot hold them in place."""
        offsets = torch.empty(self._count + 1, dtype=torch.int64, device="cpu", pin_memory=pin)
        offsets[0] = 0
        offsets[1:] = torch.from_numpy(column_layout.ends(self._column, self._first, self._count))
        values = torch.empty(int(offsets[-1]), dtype=torch.uint8, device="cpu", pin_memory=pin)
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


# DLPack's code of unsigned integers.
_UINT = 1


class Lists:
    """Texts or bytes of a block. A slice is a list, and only its elements are made. fill: what a null is."""

    def __init__(self, column: _core.Column, valid: numpy.ndarray | None, fill: str | bytes | None) -> None:
        self._bounds = column.offsets()
        self._data = memoryview(column.numpy(_UINT, 8, (column.data_bytes,), 0))
        self._make: Callable[[memoryview], Any] = (lambda data: str(data, "utf-8")) if column.format == "u" else bytes
        self._column = column
        self._valid = valid
        self._fill = fill

    def __getitem__(self, part: slice) -> list[Any]:
        values = self._made(part)
        if self._valid is not None:
            values = [value if valid else self._fill for value, valid in zip(values, self._valid[part].tolist())]
        return values

    def _made(self, part: slice) -> list[Any]:
        bounds = self._bounds[part.start : part.stop + 1].tolist()
        values: list[Any] = []
        try:
            # A comprehension would lose how many there are.
            values.extend(self._make(self._data[begin:end]) for begin, end in zip(bounds, bounds[1:]))
        except UnicodeDecodeError as error:
            raise column_layout.refusal(
                self._column,
                f"its value {part.start + len(values)} is no UTF-8 ({error}): cast the column to binary in Spark, "
                "col.cast('binary')",
            ) from error
        return values


class ListsInPlace(Lists):
    """The same of bytes in place."""

    def __init__(self, column: _core.Column, valid: numpy.ndarray | None, fill: str | bytes | None) -> None:
        self._column = column
        self._valid = valid
        self._fill = fill

    def _made(self, part: slice) -> list[Any]:
        return list(map(bytes, self._column.views(part.start, part.stop - part.start)))


class JaggedValues:
    """Lists of a block, or their bytes. A slice is Jagged; the values of its values are a view.

    values: Sliceable. bounds: on the host, also if the offsets are on a device.
    """

    def __init__(self, values: Any, bounds: Any, offsets: torch.Tensor) -> None:
        self._values = values
        self._bounds = bounds
        self._offsets = offsets

    def __getitem__(self, part: slice) -> Jagged:
        begin, end = self._bounds[part.start], self._bounds[part.stop]
        return Jagged(self._values[begin:end], self._offsets[part.start : part.stop + 1] - begin)


class StructValues:
    """Structs of a block. A slice is a dict by field. fields: Sliceable."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, part: slice) -> dict[str, Any]:
        return {name: values[part] for name, values in self._fields.items()}


def jagged_values(values: Any, bounds: numpy.ndarray) -> JaggedValues:
    """On the host."""
    bounds = bounds.astype(numpy.int64)
    return JaggedValues(values, bounds, torch.from_numpy(bounds))


def bytes_of(column: _core.Column) -> JaggedValues:
    """Texts or bytes."""
    return jagged_values(column.torch(_UINT, 8, (column.data_bytes,), 0), column.offsets())


def sliceable(values: Any) -> Any:
    """What a batch has, as what can be sliced."""
    if isinstance(values, dict):
        return StructValues({name: sliceable(part) for name, part in values.items()})
    if isinstance(values, Jagged):
        return jagged_values(sliceable(values.values), values.offsets.numpy())
    return values


class JaggedOfLists:
    """The same with values in place of nulls, which have no bytes in the block. Its values are a copy."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def __getitem__(self, part: slice) -> Jagged:
        values = [value.encode() if isinstance(value, str) else value for value in self._lists[part]]
        data = numpy.frombuffer(bytearray(b"".join(values)), numpy.uint8)
        return Jagged(torch.from_numpy(data), torch.tensor([0, *map(len, values)]).cumsum(0))


# A slice of it is what a batch has, or of values in place what makes it.
Sliceable = Union[torch.Tensor, Lists, JaggedValues, StructValues, JaggedOfLists, TensorsInPlace, JaggedInPlace]
