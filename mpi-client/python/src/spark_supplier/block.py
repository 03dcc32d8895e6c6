"""A block: the values of many elements, column by column, in the memory that Spark wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy

from spark_supplier import _core, column_layout
from spark_supplier.column_layout import ValuesInPlace
from spark_supplier.errors import ColumnError, SupplyError

if TYPE_CHECKING:
    import torch


def known_position(position: str) -> str:
    """The position, of a call that returns "" if there is none."""
    if not position:
        raise SupplyError(
            "the block is older than the last 64 windows that gave this rank rows, and nobody could resume there: ask "
            "for its position sooner"
        )
    return position


def require_arrow_views(formats: Iterable[tuple[str, str]]) -> None:
    """Raises ColumnError if a column has values in place, and pyarrow is loaded and too old for them.

    pyarrow 14 and 15 take their type for an unknown one, or fail later without a reason. formats: of each column, its
    name and its Arrow format.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or hasattr(pyarrow, "binary_view"):
        return
    for name, form in formats:
        if form == "vz":
            raise ColumnError(
                f"column '{name}' (Arrow format 'vz'): its values are in place, and pyarrow {pyarrow.__version__} has "
                "no binary_view for them: install pyarrow 16 or newer, or supply without --in-place"
            )


class Block:
    """The values of some rows, in columns. Iterating over a Reader yields blocks; users do not make them.

    The block occupies its place in the buffer while you reference it, or an array, tensor or Arrow array that you took
    of it. Such arrays stay readable after the Reader is closed. Those of values in place (--in-place of the Spark side)
    stay so only as long as nobody writes to their file: copy what you keep.

    Examples
    --------
    ::

        for block in reader:
            x = block.numpy("x")                   # shape (len(block), ...), read-only, no copy
            table = pyarrow.record_batch(block)    # all columns, no copy
    """

    __slots__ = ("_core", "__weakref__")

    def __init__(self, core: _core.Block) -> None:
        self._core = core

    @property
    def sequence(self) -> int:
        """Number of the block in the run, from 0."""
        return self._core.sequence

    @property
    def epoch(self) -> int:
        """Epoch of the rows, from 0."""
        return self._core.epoch

    @property
    def partition(self) -> int:
        """Partition of the Spark data set that the rows come from, from 0."""
        return self._core.partition

    @property
    def first_element(self) -> int:
        """Index of the block's first row in its partition."""
        return self._core.first_element

    @property
    def element_count(self) -> int:
        """Number of rows, at least 1: len(block)."""
        return self._core.element_count

    @property
    def bytes(self) -> int:
        """Bytes of the block in the mapped file."""
        return self._core.bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order. Columns of a type that this version does not know are left out."""
        return self._core.names

    def __len__(self) -> int:
        return self.element_count

    def __repr__(self) -> str:
        return (
            f"<spark_supplier.ranks.Block {self.sequence}: {self.element_count} rows of partition {self.partition}, "
            f"first {self.first_element}, epoch {self.epoch}>"
        )

    def views(self, name: str) -> list[numpy.ndarray]:
        """The values of a column of bytes or text, of any lengths. Nothing is copied.

        Parameters
        ----------
        name : str
            Of the column.

        Returns
        -------
        list of numpy.ndarray
            For each row a read-only array of uint8, of shape (bytes,).

        Raises
        ------
        KeyError
            There is no such column.
        ColumnError
            It has another type, or nulls.
        """
        column = self._column(name)
        if column.format not in ("u", "z", "vz"):
            raise column_layout.refusal(column, f"views() is for bytes and text: block.numpy({name!r})")
        column_layout.refuse_nulls(column)
        return column.views(0, column.element_count)

    def _array(self, column: _core.Column, copy: bool) -> numpy.ndarray:
        form = column.leaf_format
        if copy and form == "b":
            return column_layout.bits(column)
        if form == "vz":
            values = self._in_place(column)
            return values.gathered() if copy else column.strided_numpy(*values.strided())
        array = column.numpy(*column_layout.of(self, column))
        if form.startswith("tsu:"):
            array = array.view("datetime64[us]")
        elif form == "tDu":
            array = array.view("timedelta64[us]")
        return array.copy() if copy else array

    def _tensor(self, column: _core.Column, copy: bool) -> torch.Tensor:
        import torch

        form = column.leaf_format
        if copy and form == "b":
            return torch.from_numpy(column_layout.bits(column))
        if form == "vz":
            values = self._in_place(column)
            return torch.from_numpy(values.gathered()) if copy else column.strided_torch(*values.strided())
        layout = column_layout.of(self, column)
        try:
            tensor = column.torch(*layout)
        except (TypeError, RuntimeError, BufferError) as error:
            raise column_layout.refusal(
                column, f"PyTorch {torch.__version__} cannot take it ({error}): use block.numpy()"
            ) from error
        return tensor.clone() if copy else tensor

    def numpy(self, name: str, copy: bool = False) -> Any:
        """The values of a column as an array over the buffer, or as a copy.

        Values in place (--in-place of the Spark side) are one strided array over their file, if they lie at equal
        distances there, with at most 64 KiB between two, and numbers are aligned. Otherwise they need copy=True, or
        views().

        Parameters
        ----------
        name : str
            Of the column. "point.x" is one field of the struct "point".
        copy : bool, default False
            Whether to make a writable copy, which does not occupy the buffer. Booleans are bits in a block, so they
            need it.

        Returns
        -------
        numpy.ndarray, Jagged or dict
            Read-only without a copy. The shape is (rows,) for numbers, (rows, N) for lists of N numbers, (rows, N, M)
            for N lists of M numbers. Bytes that all have length L are uint8 of (rows, L). `data` of Datums of one shape
            is (rows, channels, height, width), uint8 or float32. Timestamps are datetime64[us], durations
            timedelta64[us], times int64 of nanoseconds. Lists of different lengths are Jagged(values, offsets): list i
            is values[offsets[i] : offsets[i + 1]]. A struct is a dict by field. A map is a dict of "keys" and "values",
            both Jagged.

        Raises
        ------
        KeyError
            There is no such column.
        ColumnError
            An array cannot hold it: text, bytes of different lengths, dates, decimals, nulls, and bits without a copy.
            Use pyarrow.record_batch(block) for those.
        """
        return column_layout.arrays(
            self._column(name),
            lambda column: self._array(column, copy),
            numpy.copy if copy else lambda offsets: offsets,
        )

    def torch(self, name: str, copy: bool = False) -> Any:
        """The values of a column as tensors: as numpy(). Timestamps and durations are int64, of microseconds.

        Do not change a tensor in place without copy=True. The buffer is read-only for this process and PyTorch has no
        read-only tensors, so x.div_(16) kills the process (SIGSEGV). x / 16 makes a new tensor.

        Parameters
        ----------
        name : str
            Of the column.
        copy : bool, default False
            Whether to make a copy, which may be changed.

        Returns
        -------
        torch.Tensor, Jagged or dict
            Offsets of Jagged are int64.

        Raises
        ------
        KeyError, ColumnError
            As numpy().
        """
        import torch

        return column_layout.arrays(
            self._column(name),
            lambda column: self._tensor(column, copy),
            lambda offsets: torch.from_numpy(offsets.astype(numpy.int64)),
        )

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """All columns as a record batch, for pyarrow.record_batch(block). Nothing is copied."""
        require_arrow_views((name, self._column(name).format) for name in self.columns)
        return self._core.arrow()

    def __arrow_c_schema__(self) -> Any:
        """The schema of the record batch, for pyarrow.schema(block)."""
        return self._core.arrow_schema()

    def position_after(self, elements: int) -> str:
        """The position after the block's first rows, for spark_supplier.ranks.open(position=...).

        Parameters
        ----------
        elements : int
            How many rows of the block come before it, from 0 to len(block).

        Returns
        -------
        str

        Raises
        ------
        SupplyError
            The block is of an exchange, and older than the last 64 windows that gave this rank rows.
        """
        return known_position(self._place_after(elements))

    def _release(self) -> None:
        """Only its numbers and positions are left. Views that were taken keep the slot."""
        self._core.release()

    def _place_after(self, elements: int) -> str:
        """position_after(), or "" if there is none."""
        return self._core.position_after(elements)

    def _in_place(self, column: _core.Column) -> ValuesInPlace:
        column_layout.refuse_nulls(column)
        return ValuesInPlace(self, column, column_layout.common_length(column, column_layout.without_array(column)))

    def _column(self, name: str) -> _core.Column:
        return self._core.column(name)
