"""Copies from the ring to a CUDA device that run while the program continues."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import torch

from supply.block import Block
from supply.errors import AllHeldError, SupplyError
from supply.pair import Supply

# Offset of the ring in the mapped file (proto/layout.tsv).
_RING_OFFSET = 65536
# cudaHostRegisterReadOnly: this process cannot write to the ring.
_READ_ONLY = 8


def require_device() -> None:
    """Raises SupplyError if there is no CUDA device."""
    if not torch.cuda.is_available():
        raise SupplyError(
            f"pin_memory=True: PyTorch {torch.__version__} finds no CUDA device here: leave pin_memory out"
        )


def pin_ring(address: int, size: int) -> Callable[[], None]:
    """Registers the ring of a mapped file with CUDA. Returns the function that ends the registration."""
    cuda = torch.cuda.cudart()
    ring = address + _RING_OFFSET
    status = int(cuda.cudaHostRegister(ring, size - _RING_OFFSET, _READ_ONLY))
    if status != 0:
        raise SupplyError(
            f"pin_memory=True: cudaHostRegister of {size - _RING_OFFSET} bytes failed with CUDA error {status}: the "
            "device may not take read-only memory, or the limit of locked memory (ulimit -l) is too low: leave "
            "pin_memory out, or set ring= smaller"
        )
    return lambda: cuda.cudaHostUnregister(ring) and None


def pin_batches(supply: Supply, copies: PendingCopies | None) -> Callable[[], object] | None:
    """Checks that a device is there. With `copies`, registers the ring, and returns the function that ends that.

    Without a call it ends with the pair. An error aborts the pair.
    """
    try:
        require_device()
        unpin = pin_ring(*supply.mapping) if copies else None
    except BaseException as error:
        supply.abort(f"{type(error).__name__}: {error}")
        raise
    if copies is None or unpin is None:
        return None

    def finish() -> None:
        copies.wait_for_all()
        unpin()

    # It runs before the pair's own finalizer, because it is newer.
    return weakref.finalize(supply, finish)


def next_block(supply: Supply, copies: PendingCopies | None) -> Block | None:
    """Supply.next_block(). If the ring is full, it waits for the oldest copy."""
    while True:
        try:
            return supply.next_block()
        except AllHeldError:
            if copies is None or not copies.wait_for_oldest():
                raise


class Stream(Protocol):
    """The part of torch.cuda.Stream that PendingCopies uses."""

    def record_event(self) -> Any:
        """An event with query() and synchronize(), as torch.cuda.Event."""


class PendingCopies:
    """The batches that a device may still be reading.

    to("cuda", non_blocking=True) only queues a copy. PyTorch keeps the source of a queued copy if it is PyTorch's own
    pinned memory, but the ring is not. So each batch is kept here until an event that was recorded after it is done.
    """

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream
        self._batches: deque[tuple[Any, object]] = deque()

    def keep(self, batch: object) -> None:
        """Keeps the batch until the device has done what is now queued on the stream (None: the current one)."""
        stream = self._stream or torch.cuda.current_stream()
        self._batches.append((stream.record_event(), batch))
        while self._batches and self._batches[0][0].query():
            self._batches.popleft()

    def wait_for_oldest(self) -> bool:
        """Waits until the oldest batch is copied, and drops it. False: there is none."""
        if not self._batches:
            return False
        self._batches[0][0].synchronize()
        self._batches.popleft()
        return True

    def wait_for_all(self) -> None:
        """Waits until every batch is copied, and drops them."""
        while self.wait_for_oldest():
            pass
