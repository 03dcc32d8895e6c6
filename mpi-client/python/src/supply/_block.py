"""A block: the values of many elements, column by column, where Spark wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy

from supply import _core, _values

if TYPE_CHECKING:
    import torch


class Block:
    """The values of `element_count` elements, in columns. Iterating over a Supply yields blocks.

    The block occupies its slot of the ring as long as it, or an array, tensor or Arrow array that was taken of it, is referenced.
    Arrays that were taken stay readable also after the Supply is closed.
    """

    __slots__ = ("_core", "_note_view", "__weakref__")

    def __init__(self, core: _core.Block, note_view: Callable[[_core.Column], None]) -> None:
        self._core = core
        self._note_view = note_view

    @property
    def sequence(self) -> int:
        """Number of the block within the run, from 0."""
        return self._core.sequence

    @property
    def epoch(self) -> int:
        """Epoch of its elements, from 0."""
        return self._core.epoch

    @property
    def partition(self) -> int:
        """Partition of the Spark data set that its elements are of, from 0."""
        return self._core.partition

    @property
    def first_element(self) -> int:
        """Index of the block's first element within its partition."""
        return self._core.first_element

    @property
    def element_count(self) -> int:
        """Elements, at least 1."""
        return self._core.element_count

    @property
    def bytes(self) -> int:
        """Bytes of the block in the mapped file."""
        return self._core.bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order; without those of a type that this version does not know."""
        return self._core.names

    def __len__(self) -> int:
        return self.element_count

    def __repr__(self) -> str:
        return (
            f"<supply.Block {self.sequence}: {self.element_count} elements from {self.first_element} on of partition "
            f"{self.partition}, epoch {self.epoch}>"
        )

    def numpy(self, name: str, copy: bool = False) -> numpy.ndarray:
        """The values of a column as a read-only array over the mapped file; with copy=True, a writable array of its own.

        Its shape is (element_count,) for numbers, and (element_count, N) for lists of N numbers. Bytes that are all of one length L
        are uint8 of (element_count, L); the `data` of Datums of one shape is (element_count, channels, height, width), uint8 or
        float32. Timestamps are datetime64[us]. Booleans are bits in a block, and have an array (of bool) only with copy=True.

        Raises ColumnError for text, for bytes of different lengths, for dates and decimals, for nulls and for bits: those are for
        Arrow, pyarrow.record_batch(block). KeyError where there is no such column.
        """
        column = self._column(name)
        if copy and column.format == "b":
            return _values.bits(column)
        array = column.numpy(*_values.layout(self, column))
        if column.format.startswith("tsu:"):
            array = array.view("datetime64[us]")
        return array.copy() if copy else array

    def torch(self, name: str, copy: bool = False) -> torch.Tensor:
        """As numpy(), but a tensor; timestamps are int64, microseconds since 1970.

        PyTorch has no read-only tensors: one that is changed in place (x.div_(16)) without copy=True ends the process by a
        segmentation fault, because the mapped file is Spark's to write. x / 16 is a new tensor.
        """
        import torch

        if copy:
            return (
                torch.from_numpy(self.numpy(name, copy=True))
                if self._core.column(name).format == "b"
                else self.torch(name).clone()
            )
        column = self._column(name)
        layout = _values.layout(self, column)
        try:
            return column.torch(*layout)
        except (TypeError, RuntimeError, BufferError) as error:
            raise _values.refusal(
                column, f"PyTorch {torch.__version__} can not take it ({error}): use block.numpy()"
            ) from error

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Every column as a record batch, by the Arrow PyCapsule interface: pyarrow.record_batch(block). Nothing is copied."""
        return self._core.arrow()

    def __arrow_c_schema__(self) -> Any:
        """The schema of the record batch: pyarrow.schema(block)."""
        return self._core.arrow_schema()

    def position_behind(self, elements: int) -> str:
        """The position behind its first `elements` elements: for supply.open(position=...)."""
        return self._core.position_behind(elements)

    def _column(self, name: str) -> _core.Column:
        column = self._core.column(name)
        self._note_view(column)
        return column
