"""Batches on a CUDA device: blocks are copied from the ring while the program computes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import torch

from spark_supplier import _core
from spark_supplier.batch import Batch, tensors_in
from spark_supplier.block import Block
from spark_supplier.block_values import BlockValues, JaggedSlice, JaggedValues, Sliceable, StructValues, TensorSlice
from spark_supplier.errors import RingFullError, SupplyError
from spark_supplier.jagged import Jagged
from spark_supplier.pair import Reader
from spark_supplier.times import Seconds

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


# In the mapped file: the offset of the ring, and of the number of its slots.
_RING_OFFSET, _ = _core.layout["constant.RING_OFFSET"]
_BLOCK_COUNT, _ = _core.layout["mapped_file_header.block_count"]
# cudaHostRegisterReadOnly: this process cannot write to the ring.
_READ_ONLY = 8
# Blocks that are on their way to the device while the loop has batches of another one.
_AHEAD = 2
# Blocks that are there are copied together, up to that size: more at once is not faster.
_TOGETHER_BYTES = 8 << 20


def cuda_device(device: torch.device | str | int) -> torch.device | None:
    """The CUDA device; without a number the current one. None: the CPU. Raises SupplyError for another one."""
    wanted = torch.device(device)
    if wanted.type == "cpu":
        return None
    if wanted.type != "cuda":
        raise SupplyError(f"to({str(device)!r}): batches can go to 'cuda' and 'cpu' only")
    if not torch.cuda.is_available():
        raise SupplyError(
            f"to({str(device)!r}): PyTorch {torch.__version__} finds no CUDA device here: leave to() out, or install a "
            "PyTorch with CUDA"
        )
    return wanted if wanted.index is not None else torch.device("cuda", torch.cuda.current_device())


class _Copy(NamedTuple):
    """The copies of blocks: the tensors that own them, on the device, and the event after them."""

    owners: list[torch.Tensor]
    done: Any


class _Begun(NamedTuple):
    """A block without its slot, its columns on the device, and the copy that they are part of."""

    block: Block
    columns: Mapping[str, Any]
    copy: _Copy


class DeviceCopies:
    """Copies the columns of blocks to a device, on a stream of its own. One thread uses it.

    The ring is registered with CUDA, so the device reads it by itself. PyTorch keeps the source of a queued copy if it
    is PyTorch's own pinned memory, but the ring is not. So a block keeps its slot until the event after its copies is
    done. Then Spark may fill it again, whatever the program still does with the batches.
    """

    def __init__(self, device: torch.device, address: int, size: int) -> None:
        """address, size: of the mapped file in this process."""
        self._device = device
        # Where copies are counted.
        self.seconds = Seconds()
        # PyTorch is faster with a number.
        self._index: int = device.index
        self._stream = torch.cuda.Stream(device)
        # That which was current when the loop asked for its batch, and whether it has ever been another one.
        self._loop_stream = torch.cuda.current_stream(self._index)
        self._streams_change = False
        # That of the block which the loop has.
        self._handed: _Copy | None = None
        self._process = os.getpid()
        ring = address + _RING_OFFSET, size - _RING_OFFSET
        self._ring = Ring(torch.frombuffer((ctypes.c_uint8 * ring[1]).from_address(ring[0]), dtype=torch.uint8))
        slots = ctypes.c_uint32.from_address(address + _BLOCK_COUNT).value
        # One slot is left to Spark, as far as that goes.
        self._most = max(1, slots - _AHEAD - 1)
        self._pending: deque[tuple[Any, list[torch.Tensor]]] = deque()
        with torch.cuda.device(device):
            status = int(torch.cuda.cudart().cudaHostRegister(*ring, _READ_ONLY))
        if status != 0:
            raise SupplyError(
                f"to('{device}'): cudaHostRegister of {ring[1]} bytes failed with CUDA error {status}: the "
                "device may not take read-only memory, or the limit of locked memory (ulimit -l) is too low: leave "
                "to() out, or set ring= smaller"
            )

    def end(self) -> None:
        """Waits for all copies, and ends the registration. A forked child has neither."""
        if os.getpid() != self._process:
            return
        try:
            # After an error of the device there is nothing to wait for. The program has had it.
            with contextlib.suppress(RuntimeError):
                self._stream.synchronize()
        finally:
            self._pending.clear()
            with contextlib.suppress(RuntimeError):
                torch.cuda.cudart().cudaHostUnregister(self._ring.places.start)

    def next_block(self, supply: Reader) -> Block | None:
        """Supply.next_block(). Before it waits for Spark, it waits for copies, so that Spark gets their slots."""
        while self._pending and not _is_ready(supply):
            self._wait_for_oldest()
        while True:
            try:
                return supply.next_block()
            except RingFullError:
                if not self._wait_for_oldest():
                    raise

    def follow(self) -> None:
        """The next batch belongs to the stream that is current now. It may be another one than that of the last."""
        stream = torch.cuda.current_stream(self._index)
        if stream != self._loop_stream:
            stream.wait_stream(self._loop_stream)
            self._loop_stream = stream
            self._streams_change = True
            if self._handed is not None:
                _record(self._handed.owners, stream)

    def hand_over(self, batch: Batch) -> None:
        """The batch may have been made on another stream."""
        if self._streams_change:
            for values in batch.values():
                _record(tensors_in(values), self._loop_stream)

    def ahead(
        self, blocks: Iterator[Block], supply: Reader, values: BlockValues
    ) -> Iterator[tuple[Block, Mapping[str, Any]]]:
        """Each block with its columns on the device. While the loop has one, the next are copied if they are there.

        The loop's stream waits for the copy of a block that is handed out. An error of a block comes after those before
        it.
        """
        begun: deque[_Begun] = deque()
        is_more, error = True, None
        while True:
            self._drop_copied()
            while is_more and len(begun) <= _AHEAD and (not begun or _is_ready(supply)):
                group: list[Source] = []
                try:
                    is_more = self._collect(group, blocks, supply, values)
                except Exception as raised:
                    is_more, error = False, raised
                try:
                    begun.extend(self._begin(group))
                except Exception as raised:
                    is_more, error = False, raised
                # Otherwise they would be held during the next wait.
                del group
            if not begun:
                self._handed = None
                if error is not None:
                    raise error
                return
            block, columns, copy = begun.popleft()
            if copy is not self._handed or self._streams_change:
                self._handed = copy
                self._loop_stream.wait_event(copy.done)
                # Their memory is of another stream, which would reuse it at once.
                _record(copy.owners, self._loop_stream)
            del copy
            yield block, columns
            del block, columns

    def _collect(self, group: list[Source], blocks: Iterator[Block], supply: Reader, values: BlockValues) -> bool:
        """Adds the next block, and those after it that are there. False: there are no more."""
        size = 0
        while not group or (len(group) < self._most and _is_ready(supply)):
            block = next(blocks, None)
            if block is None:
                return False
            size += block.bytes
            group.append(source_of(block, values.read(block)))
            # As if the next one were like it.
            if size + block.bytes > _TOGETHER_BYTES:
                return True
            # Otherwise it would be held during the next wait.
            del block
        return True

    def _begin(self, group: Sequence[Source]) -> list[_Begun]:
        if not group:
            return []
        began = perf_counter()
        tensors = [tensor for source in group for tensor in source.tensors]
        owners: list[torch.Tensor] = []
        # As torch.cuda.stream(), which takes as long as all the rest of a block.
        device = torch.cuda.current_device()
        torch.cuda.set_stream(self._stream)
        try:
            moved = self._ring.copies(tensors, self._device, owners)
        finally:
            # After an error, too: what is queued already is waited for.
            copy = _Copy(owners, self._stream.record_event())
            self._pending.append((copy.done, tensors))
            torch.cuda.set_stream(self._loop_stream)
            if device != self._index:
                torch.cuda.set_device(device)
            self.seconds.copying += perf_counter() - began
        begun = []
        for source in group:
            count = len(source.tensors)
            begun.append(_Begun(source.block, source.columns_of(moved[:count]), copy))
            del moved[:count]
        return begun

    def _drop_copied(self) -> None:
        """Returns the slots of blocks that are copied."""
        while self._pending and self._pending[0][0].query():
            self._pending.popleft()

    def _wait_for_oldest(self) -> bool:
        """Returns the slot of the oldest block when it is copied. False: no block is being copied."""
        if not self._pending:
            return False
        began = perf_counter()
        self._pending[0][0].synchronize()
        self.seconds.copying += perf_counter() - began
        self._pending.popleft()
        return True


def _record(tensors: Iterable[torch.Tensor], stream: torch.cuda.Stream) -> None:
    for tensor in tensors:
        tensor.record_stream(stream)


def _is_ready(supply: Reader) -> bool:
    try:
        return supply.is_ready()
    except SupplyError:
        # It comes again when the loop asks for the block.
        return False


def copies_to(device: torch.device, supply: Reader) -> tuple[DeviceCopies, Callable[[], object]]:
    """Registers the ring. Returns the copies, and the function that ends them; without a call they end with the pair.

    An error aborts the pair.
    """
    try:
        copies = DeviceCopies(device, *supply.mapping)
    except BaseException as error:
        supply.abort(f"{type(error).__name__}: {error}")
        raise
    # It runs before the pair's own finalizer, because it is newer.
    return copies, weakref.finalize(supply, copies.end)
