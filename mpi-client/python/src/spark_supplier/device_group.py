"""Blocks that are copied to a device together: one copy for neighbours in the ring, not one for each column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from spark_supplier.batch import Batch
from spark_supplier.block import Block
from spark_supplier.jagged import Jagged
from spark_supplier.sliceable import JaggedSlice, JaggedValues, Sliceable, StructValues, TensorSlice

# A copy takes about as long as that many more bytes in it.
_GAP_BYTES = 64 << 10
# Of the device's memory: a view of another type begins at a multiple of its numbers.
_ALIGNMENT = 64


class Source(NamedTuple):
    """A block without its slot, its tensors on the host, which keep the slot, and what makes its columns of copies."""

    block: Block
    tensors: list[torch.Tensor]
    columns_of: Callable[[Sequence[torch.Tensor]], Mapping[str, Any]]


def source_of(block: Block, columns: Mapping[str, Sliceable]) -> Source:
    """The block, which loses its slot but for the tensors."""
    tensors: list[torch.Tensor] = []
    if isinstance(columns, Batch):
        tensors.extend(columns.values())
        columns_of: Callable[[Sequence[torch.Tensor]], Mapping[str, Any]] = partial(_batch, list(columns))
    else:
        columns_of = partial(_columns, {name: _column(values, len(block), tensors) for name, values in columns.items()})
    block._release()
    return Source(block, tensors, columns_of)


def _batch(names: Iterable[str], moved: Sequence[torch.Tensor]) -> Batch:
    return Batch(zip(names, moved))


def _columns(makers: Mapping[str, Any], moved: Sequence[torch.Tensor]) -> dict[str, Any]:
    return {name: make(moved) for name, make in makers.items()}


def _column(values: Sliceable, count: int, tensors: list[torch.Tensor]) -> Callable[[Sequence[torch.Tensor]], Any]:
    """What makes the column of the copies. Its tensors are added."""
    whole: Any = values if isinstance(values, torch.Tensor) else values[0:count]
    if isinstance(whole, JaggedSlice):
        whole = whole.copy(pin=True)
    if isinstance(whole, TensorSlice):
        pinned = torch.empty(whole.shape, dtype=whole.dtype, device="cpu", pin_memory=True)
        whole.copy_to(pinned)
        whole = pinned
    return _maker(whole, tensors)


def _maker(whole: Any, tensors: list[torch.Tensor]) -> Callable[[Sequence[torch.Tensor]], Any]:
    at = len(tensors)
    if isinstance(whole, torch.Tensor):
        tensors.append(whole)
        return lambda moved: moved[at]
    if isinstance(whole, Jagged):
        tensors.append(whole.offsets)
        make, bounds = _maker(whole.values, tensors), whole.offsets.tolist()
        return lambda moved: JaggedValues(make(moved), bounds, moved[at])
    if isinstance(whole, dict):
        makers = {name: _maker(part, tensors) for name, part in whole.items()}
        return lambda moved: StructValues({name: make(moved) for name, make in makers.items()})
    return lambda _: whole


class Ring:
    """The memory that is registered with CUDA, and copies of what lies in it."""

    def __init__(self, memory: torch.Tensor) -> None:
        """memory: all of it, as bytes."""
        self._memory = memory
        self.places = range(memory.data_ptr(), memory.data_ptr() + len(memory))

    def copies(self, tensors: Sequence[torch.Tensor], device: torch.device, made: list[torch.Tensor]) -> list[Any]:
        """A copy of each tensor, in its order, queued on the current stream.

        made: gets the tensors that own the copies' memory.
        """
        copies: list[Any] = [None] * len(tensors)
        inside = []
        for number, tensor in enumerate(tensors):
            begin = tensor.data_ptr()
            if begin in self.places:
                inside.append((begin, begin + tensor.numel() * tensor.element_size(), number))
            else:
                # What is pinned already is no copy.
                made.append(tensor.pin_memory().to(device, non_blocking=True, copy=True))
                copies[number] = made[-1]
        inside.sort()
        while inside:
            count, end = 1, inside[0][1]
            while count < len(inside) and inside[count][0] <= end + _GAP_BYTES:
                end = max(end, inside[count][1])
                count += 1
            self._copy(tensors, inside[:count], end, device, copies, made)
            del inside[:count]
        return copies

    def _copy(
        self, tensors: Sequence[torch.Tensor], places: Sequence[tuple[int, int, int]], end: int, device: torch.device,
        copies: list[Any], made: list[torch.Tensor],
    ) -> None:  # fmt: skip
        """Copies everything from the first of these places to `end`."""
        first, _, number = places[0]
        if len(places) == 1:
            copies[number] = tensors[number].to(device, non_blocking=True, copy=True)
            made.append(copies[number])
            return
        begin = first - first % _ALIGNMENT
        memory = self._memory[begin - self.places.start : end + -end % _ALIGNMENT - self.places.start]
        whole = memory.to(device, non_blocking=True, copy=True)
        made.append(whole)
        typed: dict[torch.dtype, torch.Tensor] = {}
        for place, _, number in places:
            tensor = tensors[number]
            kind = tensor.dtype
            if kind not in typed:
                typed[kind] = whole.view(kind)
            at = (place - begin) // tensor.element_size()
            # Without `data`, to change one batch in place would be to change all of them for autograd.
            copies[number] = typed[kind].as_strided(tensor.shape, tensor.stride(), at).data
