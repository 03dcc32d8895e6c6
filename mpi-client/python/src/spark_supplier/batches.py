"""Batches of one size, made of blocks of any size."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

import torch

from spark_supplier.batch import Batch, Values, joined
from spark_supplier.block import Block
from spark_supplier.block_values import BlockValues, JaggedSlice, Sliceable, TensorSlice
from spark_supplier.errors import SupplyError
from spark_supplier.jagged import Jagged

# A column of a batch that is not made yet.
Part = Union[Values, TensorSlice, JaggedSlice]


class OwnRows(NamedTuple):
    """The rows of one order that are this rank's: of each `batch` rows of all ranks `size`, from `first` on.

    Rows are counted from 0 through the epoch. GlobalOrder.scala has the same rule.
    """

    batch: int
    first: int
    size: int

    @classmethod
    def of(cls, batch: int, rank: int, ranks: int) -> OwnRows:
        first, end = (-(-number * batch // ranks) for number in (rank, rank + 1))
        return cls(batch, first, end - first)

    def count(self, rows: int) -> int:
        """How many of the first rows are this rank's."""
        if self.size == self.batch:
            return rows
        return rows // self.batch * self.size + max(0, min(rows % self.batch - self.first, self.size))

    def next(self, row: int) -> int:
        """The first one of this rank that is not before that row."""
        place = row % self.batch
        if place < self.first:
            return row - place + self.first
        return row if place < self.first + self.size else row - place + self.batch + self.first

    def end(self, row: int) -> int:
        """After the run of this rank's rows that has that row."""
        return row - row % self.batch + self.first + self.size

    def handed_out(self, end: int) -> int:
        """The row that the order must reach before a run that ends there is handed out: the end of the batch of all.

        While the program is in that step, this rank releases nothing, and others may need the ring for the same step.
        """
        return end if self.size == self.batch else -(-end // self.batch) * self.batch


# A batch that no epoch fills.
EVERY_ROW = OwnRows(1 << 62, 0, 1 << 62)


class Made(NamedTuple):
    """A batch, the place after it (Block.position_after()), and how many of its block's elements this rank has left."""

    batch: Batch
    position: str
    left: int


class Batches:
    """Makes batches as the options of Dataset say."""

    def __init__(
        self, values: BlockValues, batch_size: int, dtypes: Mapping[str, torch.dtype], zero_copy: bool
    ) -> None:
        self._values = values
        self.batch_size = batch_size
        self._dtypes = dtypes
        self._zero_copy = zero_copy
        self.own = EVERY_ROW

    def of(self, blocks: Iterable[Block]) -> Generator[Made, None, None]:
        """Each batch. The last one may be smaller."""
        return self.of_columns(self._read(blocks))

    def _read(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Mapping[str, Sliceable]]]:
        for block in blocks:
            yield block, self._values.read(block)
            # Otherwise it would be held during the next wait.
            del block

    def of_columns(self, blocks: Iterable[tuple[Block, Mapping[str, Any]]]) -> Generator[Made, None, None]:
        """The same of blocks whose columns are read. A column is Sliceable, or the same on a device."""
        partial = _PartialBatch(self)
        # A whole one, which is handed out when the order has reached that row.
        batch: Batch | None = None
        due, position = 0, ""
        for block, columns in blocks:
            count, origin = len(block), block.first_element
            begin = self.own.next(origin) - origin
            own = self.own.count(origin + count)
            while batch is not None or begin < count:
                if batch is not None:
                    if due > origin + count:
                        position = block._place_after(count)
                        break
                    made = Made(batch, block._place_after(due - origin), own - self.own.count(due))
                    batch = None
                    yield made
                    del made
                    continue
                end = min(begin + self.batch_size - partial.filled, self.own.end(origin + begin) - origin, count)
                part = _rows(columns, begin, end, count)
                if partial.filled or end - begin < self.batch_size:
                    partial.append(part, end - begin)
                    position = block._place_after(end)
                    batch = partial.take() if partial.filled == self.batch_size else None
                else:
                    batch = self._whole(part)
                if batch is not None:
                    due = self.own.handed_out(origin + end)
                begin = self.own.next(origin + end) - origin
                del part
            # Otherwise they would hold the block during the next wait.
            del block, columns
        if batch is not None:
            yield Made(batch, position, 0)
        if partial.filled:
            yield Made(partial.take(), position, 0)

    def _whole(self, part: Mapping[str, Part]) -> Batch:
        # Otherwise it would hold its block until the whole batch of all ranks has come.
        zero_copy = self._zero_copy and self.own.size == self.own.batch
        if zero_copy and isinstance(part, Batch):
            # All are tensors, and none needs another type.
            return part
        take = self._view if zero_copy else self.copy
        return Batch([(name, take(name, values)) for name, values in part.items()])

    def _view(self, name: str, values: Part) -> Values:
        """The values in place, if they can be a batch so."""
        if isinstance(values, JaggedSlice):
            return self.copy(name, values)
        if isinstance(values, TensorSlice):
            values = values.view()
        if isinstance(values, torch.Tensor):
            return values.to(self._dtypes[name]) if name in self._dtypes else values
        return self._within(name, values, copy=False)

    def copy(self, name: str, values: Part) -> Values:
        """A copy that is independent of the block."""
        if isinstance(values, JaggedSlice):
            return values.copy()
        if isinstance(values, TensorSlice):
            tensor = self.empty(name, values, len(values))
            values.copy_to(tensor)
            return tensor
        if isinstance(values, torch.Tensor):
            return self.empty(name, values, len(values)).copy_(values) if name in self._dtypes else values.clone()
        return self._within(name, values, copy=True)

    def _within(self, name: str, values: Any, copy: bool) -> Any:
        """The same of the tensors in a list or a struct. Offsets and lists of texts are no views."""
        if isinstance(values, Jagged):
            return Jagged(self._within(name, values.values, copy), values.offsets)
        if isinstance(values, dict):
            return {field: self._within(f"{name}.{field}", part, copy) for field, part in values.items()}
        if not isinstance(values, torch.Tensor):
            return values
        # What is set for a whole struct is not for its booleans and masks.
        is_set = name in self._dtypes or values.dtype != torch.bool
        dtype = self._values.dtypes.of(name) if is_set else None
        return values.to(dtype or values.dtype, copy=copy)

    def empty(self, name: str, like: torch.Tensor | TensorSlice, length: int) -> torch.Tensor:
        """A tensor for `length` elements of the column."""
        shape = (length, *like.shape[1:])
        return torch.empty(shape, dtype=self._dtypes.get(name, like.dtype), device=like.device)


def _rows(columns: Mapping[str, Any], begin: int, end: int, count: int) -> Mapping[str, Part]:
    """Those elements of a block of `count`."""
    if isinstance(columns, Batch) and end - begin == count:
        # It takes less time than slices of tensors.
        return columns
    parts = [(name, values[begin:end]) for name, values in columns.items()]
    return Batch(parts) if isinstance(columns, Batch) else dict(parts)


class _PartialBatch:
    """A batch of elements of several blocks. It holds none of them."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._parts: dict[str, Any] = {}
        self.filled = 0

    def append(self, part: Mapping[str, Part], count: int) -> None:
        for name, values in part.items():
            if isinstance(values, (torch.Tensor, TensorSlice)):
                self._append_numbers(name, values)
            else:
                self._parts.setdefault(name, []).append(self._batches.copy(name, values))
        self.filled += count

    def _append_numbers(self, name: str, values: torch.Tensor | TensorSlice) -> None:
        if name not in self._parts:
            self._parts[name] = self._batches.empty(name, values, self._batches.batch_size)
        whole = self._parts[name]
        if whole.shape[1:] != values.shape[1:]:
            raise SupplyError(
                f"column '{name}': an element has shape {tuple(values.shape[1:])}, earlier ones of the batch have "
                f"{tuple(whole.shape[1:])}: make them equal in Spark, or read block by block (ranks.open)"
            )
        if whole.dtype != values.dtype and name not in self._batches._dtypes:
            raise SupplyError(
                f"column '{name}': an element has type {values.dtype}, earlier ones of the batch have {whole.dtype}: "
                "name a type for it (dtypes)"
            )
        place = whole[self.filled : self.filled + len(values)]
        if isinstance(values, TensorSlice):
            values.copy_to(place)
        else:
            place[:] = values

    def take(self) -> Batch:
        """The batch. The next one is empty."""
        batch = Batch()
        for name, values in self._parts.items():
            batch[name] = values[: self.filled] if isinstance(values, torch.Tensor) else joined(values)
        self._parts, self.filled = {}, 0
        return batch
