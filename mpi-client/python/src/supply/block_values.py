"""The columns of a block in the forms that a batch has. Values in place are copied once, and only if need be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy
import torch

from supply import _core, column_layout
from supply.arguments import MASK, MASK_SUFFIX
from supply.batch import Batch
from supply.block import Block
from supply.column_layout import ValuesInPlace
from supply.errors import ColumnError
from supply.jagged import Jagged


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


_INT, _UINT = 0, 1
# Types that PyTorch has since 2.3.
_UNSIGNED = {"S", "I", "L"}


class _Lists:
    """Texts or bytes of a block. A slice is a list, and only its elements are made. fill: what a null is."""

    def __init__(self, column: _core.Column, valid: numpy.ndarray | None, fill: str | bytes | None) -> None:
        self._bounds = column.offsets()
        self._data = memoryview(column.numpy(_UINT, 8, (column.data_bytes,), 0))
        self._make: Callable[[memoryview], Any] = (lambda data: str(data, "utf-8")) if column.format == "u" else bytes
        self._valid = valid
        self._fill = fill

    def __getitem__(self, part: slice) -> list[Any]:
        values = self._made(part)
        if self._valid is not None:
            values = [value if valid else self._fill for value, valid in zip(values, self._valid[part].tolist())]
        return values

    def _made(self, part: slice) -> list[Any]:
        bounds = self._bounds[part.start : part.stop + 1].tolist()
        return [self._make(self._data[begin:end]) for begin, end in zip(bounds, bounds[1:])]


class _ListsInPlace(_Lists):
    """The same of bytes in place."""

    def __init__(self, column: _core.Column, valid: numpy.ndarray | None, fill: str | bytes | None) -> None:
        self._column = column
        self._valid = valid
        self._fill = fill

    def _made(self, part: slice) -> list[Any]:
        return list(map(bytes, self._column.views(part.start, part.stop - part.start)))


class _JaggedValues:
    """Texts or bytes of a block. A slice is Jagged; its values are a view."""

    def __init__(self, column: _core.Column) -> None:
        self._bounds = column.offsets().astype(numpy.int64)
        self._data = column.torch(_UINT, 8, (column.data_bytes,), 0)

    def __getitem__(self, part: slice) -> Jagged:
        bounds = self._bounds[part.start : part.stop + 1]
        return Jagged(self._data[bounds[0] : bounds[-1]], torch.from_numpy(bounds - bounds[0]))


class _JaggedOfLists:
    """The same with values in place of nulls, which have no bytes in the block. Its values are a copy."""

    def __init__(self, lists: _Lists) -> None:
        self._lists = lists

    def __getitem__(self, part: slice) -> Jagged:
        values = [value.encode() if isinstance(value, str) else value for value in self._lists[part]]
        data = numpy.frombuffer(bytearray(b"".join(values)), numpy.uint8)
        return Jagged(torch.from_numpy(data), torch.tensor([0, *map(len, values)]).cumsum(0))


# A slice of it is what a batch has, or of values in place what makes it.
Sliceable = Union[torch.Tensor, _Lists, _JaggedValues, _JaggedOfLists, TensorsInPlace, JaggedInPlace]


class BlockValues:
    """Reads the columns of a block, as the options of SupplyDataset say."""

    def __init__(
        self,
        columns: Sequence[str],
        dtypes: Mapping[str, torch.dtype],
        ragged: Mapping[str, str],
        nulls: Mapping[str, Any],
    ) -> None:
        self._columns = columns
        self._dtypes = dtypes
        self._ragged = ragged
        self._nulls = nulls
        self._plain: bool | None = None

    def read(self, block: Block) -> Mapping[str, Sliceable]:
        """The values by name: a Batch if all are tensors. Numbers are views."""
        if self._plain is None:
            self._plain = not self._nulls and all(self._is_plain(block._column(name)) for name in self._columns)
        if self._plain:
            try:
                return Batch([(name, block.torch(name)) for name in self._columns])
            except ColumnError:
                # _numbers() names the option to set.
                pass
        values: dict[str, Sliceable] = {}
        for name in self._columns:
            column = block._column(name)
            valid = _valid(column) if name in self._nulls or column.null_count else None
            values[name] = self._values(block, column, valid)
            if _is_mask(self._nulls.get(name)):
                values[name + MASK_SUFFIX] = torch.from_numpy(valid)
        return values

    def _is_plain(self, column: _core.Column) -> bool:
        form = column.format
        return (
            form not in ("u", "b", "tdD", "vz")
            and form[:2] != "d:"
            and column.name not in (*self._ragged, *self._dtypes)
        )

    def _values(self, block: Block, column: _core.Column, valid: numpy.ndarray | None) -> Sliceable:
        ragged = self._ragged.get(column.name, "list" if column.format == "u" else None)
        is_in_place = column.format == "vz"
        if ragged is not None:
            if column.format not in ("u", "z", "vz"):
                raise column_layout.refusal(column, "ragged is for text and bytes only: leave it out of ragged")
            lists = (_ListsInPlace if is_in_place else _Lists)(
                column, valid if column.null_count else None, self._fill_of_list(column)
            )
            if ragged == "list":
                return lists
            self._refuse_nulls(column)
            if column.null_count:
                return _JaggedOfLists(lists)
            return JaggedInPlace(column) if is_in_place else _JaggedValues(column)
        self._refuse_nulls(column)
        values = self._in_place(block, column) if is_in_place else self._numbers(block, column)
        if valid is None:
            return values
        numbers = values.clone()
        numbers = numbers.to(self._dtypes.get(column.name, numbers.dtype))
        numbers[~torch.from_numpy(valid)] = self._fill(column, numbers.dtype)
        return numbers

    def _fill(self, column: _core.Column, dtype: torch.dtype) -> Any:
        """The value of nulls in a tensor of that type."""
        fill = self._nulls[column.name]
        if _is_mask(fill):
            return 0
        if isinstance(fill, (str, bytes)):
            form = "" if column.format not in ("z", "vz") else ": for bytes in a list, set ragged, too"
            raise column_layout.refusal(column, f"nulls gives {fill!r}, and the batch has numbers here{form}")
        if not dtype.is_floating_point and not float(fill).is_integer():
            raise column_layout.refusal(
                column,
                f"nulls gives {fill}, and {dtype} has integers: give one, or set dtypes="
                f"{{{column.name!r}: torch.float32}}",
            )
        return fill

    def _fill_of_list(self, column: _core.Column) -> str | bytes | None:
        """The value of nulls among texts or bytes. None: nulls does not say one."""
        empty = _empty(column)
        fill = self._nulls.get(column.name)
        if fill is None or _is_mask(fill):
            return None if fill is None else empty
        if not isinstance(fill, type(empty)):
            kind = "text" if isinstance(empty, str) else "bytes"
            raise column_layout.refusal(
                column, f"nulls gives {fill!r}, and the column has {kind}: give {empty!r}, other {kind}, or {MASK!r}"
            )
        return fill

    def _refuse_nulls(self, column: _core.Column) -> None:
        name = column.name
        if column.null_count and name not in self._nulls:
            value = _empty(column) if name in self._ragged else 0
            raise column_layout.refusal(
                column,
                f"{column.null_count} of {column.element_count} elements are null: nulls={{{name!r}: {value!r}}}"
                f" gives them a value, nulls={{{name!r}: {MASK!r}}} adds the column {name + MASK_SUFFIX!r}",
            )

    def _numbers(self, block: Block, column: _core.Column) -> torch.Tensor:
        form, count = column.format, column.element_count
        if form == "b":
            return torch.from_numpy(column_layout.bits(column, nulls=True))
        if form == "tdD":
            return column.torch(_INT, 32, (count,), 0)
        if form.startswith("d:"):
            raise column_layout.refusal(
                column, "tensors have no decimals: cast the column to double in Spark, col.cast('double')"
            )
        if form == "z":
            _common_length(column)
        layout = column_layout.of(block, column, nulls=True)
        if form in _UNSIGNED and not hasattr(torch, "uint16"):
            return self._converted(column, column.numpy(*layout))
        return column.torch(*layout)

    def _in_place(self, block: Block, column: _core.Column) -> TensorsInPlace:
        return TensorsInPlace(ValuesInPlace(block, column, _common_length(column)))

    def _converted(self, column: _core.Column, array: numpy.ndarray) -> torch.Tensor:
        dtype = self._dtypes.get(column.name)
        if dtype is None:
            raise column_layout.refusal(
                column,
                f"PyTorch {torch.__version__} has no {array.dtype}: dtypes={{{column.name!r}: torch.long}} converts it",
            )
        return torch.from_numpy(array.astype(torch.empty(0, dtype=dtype).numpy().dtype))


def _is_mask(fill: Any) -> bool:
    # Not by == alone, which NumPy has for each element.
    return isinstance(fill, str) and fill == MASK


def _empty(column: _core.Column) -> str | bytes:
    return "" if column.format == "u" else b""


def _common_length(column: _core.Column) -> int:
    return column_layout.common_length(column, f"set ragged={{{column.name!r}: 'list'}}, or 'jagged'")


def _valid(column: _core.Column) -> numpy.ndarray:
    """For each element, whether it has a value."""
    bits = column.validity()
    if bits is None:
        return numpy.ones(column.element_count, bool)
    return column_layout.unpacked(bits, column.element_count)
