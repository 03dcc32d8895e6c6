"""Batches on a CUDA device: blocks are copied from the ring while the program computes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import torch

from spark_supplier import _core
from spark_supplier.batch import Batch, tensors_in
from spark_supplier.block import Block
from spark_supplier.block_values import BlockValues
from spark_supplier.device_group import Ring, Source, source_of
from spark_supplier.errors import RingFullError, SupplyError
from spark_supplier.pair import Reader
from spark_supplier.times import Seconds

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
