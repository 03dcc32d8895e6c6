"""The columns of a block in the forms that a batch is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy
import torch

from spark_supplier import _core, column_layout
from spark_supplier.arguments import MASK, MASK_SUFFIX, ByColumn
from spark_supplier.batch import Batch, places_of, taken
from spark_supplier.block import Block
from spark_supplier.column_layout import ValuesInPlace
from spark_supplier.errors import ColumnError
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

    def __getitem__(self, part: slice) -> TensorSlice:
        return TensorSlice(self._values, self._first + part.start, part.stop - part.start)

    def view(self) -> torch.Tensor:
        """The values in place if one tensor can hold them so, else a copy."""
        strided = self._values.strided_part(self._first, self._count)
        return self._values.column.strided_torch(*strided) if strided else self.clone()

    def copy_to(self, to: torch.Tensor) -> None:
        """Stores the values in a contiguous tensor of that shape."""
        if to.dtype == self.dtype:
            self._values.column.gather(self._first, self._count, to.numpy())
        else:
            to.copy_(self.view())

    def clone(self) -> torch.Tensor:
        """A copy, as Tensor.clone()."""
        copy = torch.empty(self.shape, dtype=self.dtype)
        self.copy_to(copy)
        return copy


class JaggedSlice:
    """`count` values of any length, from `first` on."""

    def __init__(self, column: _core.Column, first: int, count: int) -> None:
        self._column = column
        self._first = first
        self._count = count

    def __getitem__(self, part: slice) -> JaggedSlice:
        return JaggedSlice(self._column, self._first + part.start, part.stop - part.start)

    def copy(self, pin: bool = False) -> Jagged:
        """A copy, with `pin` in pinned memory: one tensor cannot hold them in place."""
        offsets = torch.empty(self._count + 1, dtype=torch.int64, device="cpu", pin_memory=pin)
        offsets[0] = 0
        offsets[1:] = torch.from_numpy(column_layout.ends(self._column, self._first, self._count))
        values = torch.empty(int(offsets[-1]), dtype=torch.uint8, device="cpu", pin_memory=pin)
        self._column.gather(self._first, self._count, values.numpy())
        return Jagged(values, offsets)


# DLPack's code of unsigned integers.
_UINT = 1


class Lists:
    """Texts or bytes of a block. A slice is a list, and only its elements are made. fill: what a null is."""

    def __init__(self, column: _core.Column, valid: numpy.ndarray | None, fill: str | bytes | None) -> None:
        self._is_in_place = column.format == "vz"
        if not self._is_in_place:
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
        if self._is_in_place:
            return list(map(bytes, self._column.views(part.start, part.stop - part.start)))
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
Sliceable = Union[torch.Tensor, Lists, JaggedValues, StructValues, JaggedOfLists, TensorSlice, JaggedSlice]


# Types that PyTorch has since 2.3.
_UNSIGNED = {"S", "I", "L"}
# Forms of `ragged` for texts and bytes, besides lists.
_JAGGED = ("jagged", "pad", "nested")


class BlockValues:
    """Reads the columns of a block, as the options of Dataset say."""

    def __init__(
        self,
        columns: Sequence[str],
        dtypes: Mapping[str, torch.dtype],
        ragged: Mapping[str, str] | str,
        nulls: Mapping[str, Any],
    ) -> None:
        self._columns = columns
        self.dtypes = ByColumn(dtypes, columns)
        self._ragged = ByColumn({} if isinstance(ragged, str) else ragged, columns)
        self._nulls = ByColumn(nulls, columns)
        # The columns, if all are numbers: one call makes all tensors of a block.
        self._numbers_alone: _core.PlainColumns | None = None
        self._plain: bool | None = None

    def read(self, block: Block) -> Mapping[str, Sliceable]:
        """The values by name: a Batch if all are tensors. Numbers are views."""
        if self._plain is None:
            self._check_fields(block)
            self._plain = not self._nulls.given and all(self._is_plain(block._column(name)) for name in self._columns)
            if self._plain:
                self._numbers_alone = block._core.plain_columns(list(self._columns))
        if self._numbers_alone is not None:
            tensors = self._numbers_alone.tensors(block._core)
            if tensors is not None:
                return Batch(zip(self._columns, tensors))
        if self._plain:
            try:
                return Batch([(name, block.torch(name)) for name in self._columns])
            except ColumnError:
                # _numbers() names the option to set.
                pass
        values: dict[str, Sliceable] = {}
        for name in self._columns:
            self._add(values, name, block, block._column(name))
        return values

    def _add(self, values: dict[str, Sliceable], name: str, block: Block, column: _core.Column) -> None:
        """Adds a column or a field under that name, and its mask."""
        values[name] = self._values(block, column)
        if _is_mask(self._nulls.of(column.name)):
            values[name + MASK_SUFFIX] = self._mask(column)

    def _check_fields(self, block: Block) -> None:
        """Refuses settings of fields that do not exist."""
        known = {name for column in self._columns for name in column_layout.names(block._column(column))}
        for option in (self.dtypes, self._ragged, self._nulls):
            for name in option.fields():
                if name not in known:
                    fields = ", ".join(sorted(known.difference(self._columns))) or "none"
                    raise ColumnError(f"there is no field '{name}' in the columns; there are {fields}")

    def _is_plain(self, column: _core.Column) -> bool:
        form = column.leaf_format
        is_tensor = column.format == "z" or (column.is_plain and form != "tdD" and not _lacks_type(form))
        return is_tensor and not (column.name in self._ragged.given or column.name in self.dtypes.given)

    def _values(self, block: Block, column: _core.Column, in_list: bool = False) -> Sliceable:
        """in_list: the column is the values of lists."""
        ragged = self._ragged.given.get(column.name)
        if ragged == "sparse" and not in_list and not _is_sparse_vector(column):
            raise column_layout.refusal(
                column, "ragged 'sparse' is for sparse vectors, structs of size, indices and values: leave it out"
            )
        if column_layout.is_nested(column):
            return self._nested(block, column)
        if column.format in ("u", "z", "vz") and (in_list or ragged is not None or column.format == "u"):
            return self._texts(column, ragged or "list")
        if ragged is not None and not in_list:
            raise column_layout.refusal(column, "ragged is for lists, text and bytes: leave it out of ragged")
        self._refuse_nulls(column, in_list)
        values = self._in_place(block, column) if column.format == "vz" else self._numbers(block, column)
        if not column_layout.has_nulls(column):
            return values
        numbers = values.clone()
        numbers = numbers.to(self.dtypes.of(column.name) or numbers.dtype)
        numbers[~torch.from_numpy(_valid(column))] = self._fill(column, numbers.dtype)
        return numbers

    def _texts(self, column: _core.Column, ragged: str) -> Sliceable:
        lists = Lists(column, _valid(column) if column.null_count else None, self._fill_of_list(column))
        if ragged not in _JAGGED:
            return lists
        self._refuse_nulls(column)
        if column.null_count:
            return JaggedOfLists(lists)
        return JaggedSlice(column, 0, column.element_count) if column.format == "vz" else bytes_of(column)

    def _nested(self, block: Block, column: _core.Column) -> Sliceable:
        if column.format == "+s":
            fields: dict[str, Sliceable] = {}
            for child in column.children():
                self._add(fields, child.field, block, child)
            return StructValues(fields)
        self._refuse_nulls(column)
        if column.format == "+l" or column_layout.is_list(column):
            [child] = column.children()
            return _lists(column, self._values(block, child, in_list=True), child)
        parts: dict[str, Sliceable] = {}
        for name, child in column_layout.map_parts(column):
            parts[name] = _lists(column, self._values(block, child, in_list=True), child)
            if _is_mask(self._nulls.of(child.name)):
                parts[name + MASK_SUFFIX] = _lists(column, self._mask(child), child)
        return StructValues(parts)

    def _mask(self, column: _core.Column) -> Sliceable:
        """In the form of the column's values, whether they are there."""
        if column_layout.is_list(column):
            [child] = column.children()
            return _lists(column, self._mask(child), child)
        return torch.from_numpy(_valid(column))

    def _fill(self, column: _core.Column, dtype: torch.dtype) -> Any:
        """The value of nulls in a tensor of that type."""
        fill = self._nulls.of(column.name)
        if _is_mask(fill):
            return 0
        if isinstance(fill, (str, bytes)):
            form = "" if column.format not in ("z", "vz") else ": for bytes in a list, set ragged, too"
            raise column_layout.refusal(column, f"nulls gives {fill!r}, and the batch has numbers here{form}")
        assert fill is not None
        if not dtype.is_floating_point and not float(fill).is_integer():
            raise column_layout.refusal(
                column,
                f"nulls gives {fill}, and {dtype} has integers: give one, or set dtypes="
                f"{{{column.name!r}: torch.float32}}",
            )
        return fill

    def _fill_of_list(self, column: _core.Column) -> str | bytes | None:
        """The value of nulls among texts or bytes. None: nulls does not say one."""
        empty: str | bytes = "" if column.format == "u" else b""
        fill = self._nulls.of(column.name)
        if fill is None or _is_mask(fill):
            return None if fill is None else empty
        if not isinstance(fill, type(empty)):
            kind = "text" if isinstance(empty, str) else "bytes"
            raise column_layout.refusal(
                column, f"nulls gives {fill!r}, and the column has {kind}: give {empty!r}, other {kind}, or {MASK!r}"
            )
        return fill

    def _refuse_nulls(self, column: _core.Column, in_list: bool = False) -> None:
        name, is_nested = column.name, column_layout.is_nested(column)
        has_nulls = column.null_count if is_nested else column_layout.has_nulls(column)
        if has_nulls and self._nulls.of(name) is None:
            value = _empty(_innermost(column)) if is_nested or name in self._ragged.given else 0
            form = " of lists" if in_list else ""
            raise column_layout.refusal(
                column,
                f"{column_layout.nulls_of(column, form)}: nulls={{{name!r}: {value!r}}} gives them a value, "
                f"nulls={{{name!r}: {MASK!r}}} adds the column {name + MASK_SUFFIX!r}",
            )

    def _numbers(self, block: Block, column: _core.Column) -> torch.Tensor:
        form = column.leaf_format
        if form == "b":
            return torch.from_numpy(column_layout.bits(column, nulls=True))
        if form == "tdD":
            return column.torch()
        if form.startswith("d:"):
            raise column_layout.refusal(
                column, "tensors have no decimals: cast the column to double in Spark, col.cast('double')"
            )
        if form == "z":
            _common_length(column)
        layout = column_layout.of(block, column, nulls=True)
        if _lacks_type(form):
            return self._converted(column, column.numpy(*layout))
        return column.torch(*layout)

    def _in_place(self, block: Block, column: _core.Column) -> TensorSlice:
        return TensorSlice(ValuesInPlace(block, column, _common_length(column)), 0, column.element_count)

    def _converted(self, column: _core.Column, array: numpy.ndarray) -> torch.Tensor:
        dtype = self.dtypes.of(column.name)
        if dtype is None:
            raise column_layout.refusal(
                column,
                f"PyTorch {torch.__version__} has no {array.dtype}: dtypes={{{column.name!r}: torch.long}} converts it",
            )
        return torch.from_numpy(array.astype(torch.empty(0, dtype=dtype).numpy().dtype))


def _lacks_type(form: str) -> bool:
    """Whether this PyTorch has no such numbers."""
    return form in _UNSIGNED and not hasattr(torch, "uint16")


def _is_mask(fill: Any) -> bool:
    # Not by == alone, which NumPy has for each element.
    return isinstance(fill, str) and fill == MASK


def _is_sparse_vector(column: _core.Column) -> bool:
    forms = {child.field: child.format for child in column.children()}
    return {"size": "i", "indices": "+l", "values": "+l"}.items() <= forms.items()


def _empty(column: _core.Column) -> str | bytes | int:
    return "" if column.format == "u" else b"" if column.format in ("z", "vz") else 0


def _innermost(column: _core.Column) -> _core.Column:
    """The values of lists of lists."""
    children = column.children()
    return _innermost(children[0]) if len(children) == 1 and column.format != "+s" else column


def _common_length(column: _core.Column) -> int:
    return column_layout.common_length(column, f"set ragged={{{column.name!r}: 'list'}}, or 'jagged'")


def _valid(column: _core.Column) -> numpy.ndarray:
    """For each element, whether it has a value, or for each value of fixed lists that may be null."""
    bits, count = column.validity(), column.element_count
    valid = numpy.ones(count, bool) if bits is None else column_layout.unpacked(bits, count)
    if not column.format.startswith("+w:") or column_layout.is_list(column):
        return valid
    for child in column.children():
        within = _valid(child)
        within = within.reshape(count, -1, *within.shape[1:])
        return within & valid.reshape(count, *[1] * (within.ndim - 1))
    return valid


def _lists(column: _core.Column, values: Sliceable, child: _core.Column) -> Sliceable:
    """The values of a list or of a part of a map, or their mask. A null is an empty list."""
    bounds = column_layout.bounds(column).astype(numpy.int64)
    if column.null_count:
        lengths = numpy.diff(bounds) * _valid(column)
        begins, ends = bounds[:-1], numpy.cumsum(lengths)
        if len(ends) and ends[-1] != bounds[-1] - bounds[0]:
            # What stands there for a null means nothing.
            places = places_of(torch.from_numpy(begins), torch.from_numpy(lengths))
            values = sliceable(taken(values[0 : child.element_count], places))
            bounds = numpy.concatenate([[0], ends])
    return jagged_values(values, bounds)
