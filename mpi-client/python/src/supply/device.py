"""Batches on a CUDA device: blocks are copied from the ring while the program computes."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from supply.batch import Batch, Jagged
from supply.block import Block
from supply.block_values import BlockValues, JaggedSlice, Sliceable, TensorSlice
from supply.errors import AllHeldError, SupplyError
from supply.pair import Supply

# Offset of the ring in the mapped file (proto/layout.tsv).
_RING_OFFSET = 65536
# cudaHostRegisterReadOnly: this process cannot write to the ring.
_READ_ONLY = 8
# Blocks that are on their way to the device while the loop has batches of another one.
_AHEAD = 2


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


class _JaggedOnDevice:
    """Texts or bytes of a block. A slice is Jagged, and its values are a view. bounds: on the host, for slices."""

    def __init__(self, whole: Jagged, bounds: list[int]) -> None:
        self._whole = whole
        self._bounds = bounds

    def __getitem__(self, part: slice) -> Jagged:
        begin, end = self._bounds[part.start], self._bounds[part.stop]
        return Jagged(self._whole.values[begin:end], self._whole.offsets[part.start : part.stop + 1] - begin)


class _Begun(NamedTuple):
    """A block without its slot, its columns on the device, their tensors, and the event after their copies."""

    block: Block
    columns: Mapping[str, Any]
    tensors: list[torch.Tensor]
    copied: Any


class DeviceCopies:
    """Copies the columns of blocks to a device, on a stream of its own. One thread uses it.

    The ring is registered with CUDA, so the device reads it by itself. PyTorch keeps the source of a queued copy if it
    is PyTorch's own pinned memory, but the ring is not. So a block keeps its slot until the event after its copies is
    done. Then Spark may fill it again, whatever the program still does with the batches.
    """

    def __init__(self, device: torch.device, address: int, size: int) -> None:
        """address, size: of the mapped file in this process."""
        self._device = device
        # PyTorch is faster with a number.
        self._index: int = device.index
        self._stream = torch.cuda.Stream(device)
        # That which was current when the loop got its block.
        self._loop_stream = torch.cuda.current_stream(self._index)
        self._process = os.getpid()
        self._ring = range(address + _RING_OFFSET, address + size)
        self._pending: deque[tuple[Any, list[torch.Tensor]]] = deque()
        with torch.cuda.device(device):
            status = int(torch.cuda.cudart().cudaHostRegister(self._ring.start, len(self._ring), _READ_ONLY))
        if status != 0:
            raise SupplyError(
                f"to('{device}'): cudaHostRegister of {len(self._ring)} bytes failed with CUDA error {status}: the "
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
                torch.cuda.cudart().cudaHostUnregister(self._ring.start)

    def next_block(self, supply: Supply) -> Block | None:
        """Supply.next_block(). Before it waits for Spark, it waits for copies, so that Spark gets their slots."""
        while self._pending and not _is_ready(supply):
            self._wait_for_oldest()
        while True:
            try:
                return supply.next_block()
            except AllHeldError:
                if not self._wait_for_oldest():
                    raise

    def ahead(
        self, blocks: Iterator[Block], supply: Supply, values: BlockValues
    ) -> Iterator[tuple[Block, Mapping[str, Any]]]:
        """Each block with its columns on the device. While the loop has one, the next are copied if they are there.

        The stream that is current when a block is handed out waits for its copy. An error of a block comes after those
        before it.
        """
        begun: deque[_Begun] = deque()
        is_more, error = True, None
        while True:
            stream = torch.cuda.current_stream(self._index)
            while is_more and len(begun) <= _AHEAD and (not begun or _is_ready(supply)):
                try:
                    block = next(blocks, None)
                    if block is not None:
                        begun.append(self._begin(block, values.read(block), stream))
                    is_more = block is not None
                    # Otherwise it would be held during the next wait.
                    del block
                except Exception as raised:
                    is_more, error = False, raised
            if not begun:
                if error is not None:
                    raise error
                return
            self._drop_copied()
            block, columns, tensors, copied = begun.popleft()
            stream.wait_event(copied)
            self._loop_stream = stream
            # Their memory is of another stream, which would reuse it at once.
            _record(tensors, stream)
            del tensors
            yield block, columns
            del block, columns

    def hand_over(self, batch: Batch) -> None:
        """Orders the current stream after the batch, if the loop has changed its stream inside a block."""
        stream = torch.cuda.current_stream(self._index)
        if stream != self._loop_stream:
            stream.wait_stream(self._loop_stream)
            for values in batch.values():
                _record(values if isinstance(values, Jagged) else [values], stream)

    def _begin(self, block: Block, columns: Mapping[str, Sliceable], stream: torch.cuda.Stream) -> _Begun:
        """stream: is current afterwards, as it was before."""
        sources: list[torch.Tensor] = []
        tensors: list[torch.Tensor] = []

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.data_ptr() in self._ring:
                sources.append(tensor)
            else:
                # What is pinned already is no copy.
                tensor = tensor.pin_memory()
            tensors.append(tensor.to(self._device, non_blocking=True, copy=True))
            return tensors[-1]

        # As torch.cuda.stream(), which takes as long as all the rest of a block.
        device = torch.cuda.current_device()
        torch.cuda.set_stream(self._stream)
        try:
            moved = {name: self._on_device(values, len(block), copy) for name, values in columns.items()}
        finally:
            # After an error, too: what is queued already is waited for.
            copied = self._stream.record_event()
            self._pending.append((copied, sources))
            torch.cuda.set_stream(stream)
            if device != self._index:
                torch.cuda.set_device(device)
        block._release()
        return _Begun(block, Batch(moved) if isinstance(columns, Batch) else moved, tensors, copied)

    def _on_device(self, values: Sliceable, count: int, copy: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        if isinstance(values, torch.Tensor):
            return copy(values)
        whole: Any = values[0:count]
        if isinstance(whole, TensorSlice):
            pinned = torch.empty(whole.shape, dtype=whole.dtype, device="cpu", pin_memory=True)
            whole.copy_to(pinned)
            return copy(pinned)
        if isinstance(whole, JaggedSlice):
            whole = whole.copy(pin=True)
        if isinstance(whole, Jagged):
            return _JaggedOnDevice(Jagged(*map(copy, whole)), whole.offsets.tolist())
        return whole

    def _drop_copied(self) -> None:
        """Returns the slots of blocks that are copied."""
        while self._pending and self._pending[0][0].query():
            self._pending.popleft()

    def _wait_for_oldest(self) -> bool:
        """Returns the slot of the oldest block when it is copied. False: no block is being copied."""
        if not self._pending:
            return False
        self._pending[0][0].synchronize()
        self._pending.popleft()
        return True


def _record(tensors: Iterable[Any], stream: torch.cuda.Stream) -> None:
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            tensor.record_stream(stream)


def _is_ready(supply: Supply) -> bool:
    try:
        return supply.is_ready()
    except SupplyError:
        # It comes again when the loop asks for the block.
        return False


def copies_to(device: torch.device, supply: Supply) -> tuple[DeviceCopies, Callable[[], object]]:
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
