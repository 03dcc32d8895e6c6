"""The exchange's collective operations over torch.distributed."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from spark_supplier.errors import ConfigError, SupplyTimeoutError

if TYPE_CHECKING:
    from spark_supplier.exchange import Parts

# The group's timeout holds for its operations, too. The exchange's own limit, with a better text, passes first.
_MARGIN_SECONDS = 5


class TorchTransport:
    """A Transport over a group that can move CPU tensors. It calls the group itself: the function of a rank may have
    called destroy_process_group() before the rest of the data is read.
    """

    def __init__(self, group: distributed.ProcessGroup, limit: float) -> None:
        """group: the default group, which gets a gloo group of its own beside it, or one that serves nothing else.
        limit: seconds to wait for the other ranks.
        """
        if group is distributed.group.WORLD:
            # NCCL takes no CPU tensors, and the program uses the default group at the same time.
            group = _new_group(limit)
        backend = distributed.get_backend(group)
        if not any(able in backend for able in ("gloo", "mpi")):
            raise ConfigError(
                f"comm is a group with the backend {backend}, which does not exchange CPU tensors: pass a gloo group, "
                "or leave comm out"
            )
        self._group = group
        self.rank: int = group.rank()
        self.ranks: int = group.size()
        # Of the operation that is under way.
        self._works: list[Any] = []
        # What it receives, and where that belongs, if there are gaps.
        self._arriving: tuple[memoryview, memoryview, Parts] | None = None

    def allgather(self, send: memoryview, receive: memoryview) -> None:
        pieces = list(_tensor(receive).chunk(self.ranks))
        self._works = [self._group.allgather([pieces], [_tensor(send)])]

    def alltoall(self, send: memoryview, receive: memoryview) -> None:
        self._works = [self._group.alltoall_base(_tensor(receive), _tensor(send), [], [])]

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> None:
        """alltoall_base() knows no gaps. If there are some, where neighbours copy, messages go through a buffer."""
        whole = _span(receive, receive_parts)
        self._arriving = None
        if whole is None:
            whole = memoryview(bytearray(sum(size for _, size in receive_parts)))
            self._arriving = whole, receive, receive_parts
        sent = _span(send, send_parts)
        if sent is None:
            sent = memoryview(bytearray().join(send[offset:][:size] for offset, size in send_parts))
        sizes = [size for _, size in receive_parts], [size for _, size in send_parts]
        self._works = [self._group.alltoall_base(_tensor(whole), _tensor(sent), *sizes)]

    def poll(self) -> bool:
        if not all(work.is_completed() for work in self._works):
            return False
        for work in self._works:
            # Raises the error of a failed one.
            work.wait()
        self._works = []
        if self._arriving is not None:
            _spread(*self._arriving)
            self._arriving = None
        return True

    def close(self) -> None:
        """The group goes with the program's other groups."""


def _new_group(limit: float) -> distributed.ProcessGroup:
    begun = time.monotonic()
    try:
        return distributed.new_group(backend="gloo", timeout=timedelta(seconds=limit + _MARGIN_SECONDS))
    except RuntimeError as error:
        if time.monotonic() < begun + limit:
            raise
        raise SupplyTimeoutError(
            f"another rank has not opened its exchange for {limit:g} s: has it failed, or opened its pairs in another "
            f"order? (timeout / SUPPLY_TIMEOUT) torch.distributed says: {error}"
        ) from error


def _spread(arrived: memoryview, receive: memoryview, parts: Parts) -> None:
    at = 0
    for offset, size in parts:
        receive[offset : offset + size] = arrived[at : at + size]
        at += size


def _span(buffer: memoryview, parts: Parts) -> memoryview | None:
    """The bytes of the parts; None: there are gaps between them."""
    parts = [(offset, size) for offset, size in parts if size]
    begin = end = parts[0][0] if parts else 0
    for offset, size in parts:
        if offset != end:
            return None
        end += size
    return buffer[begin:end]


def _tensor(buffer: memoryview) -> torch.Tensor:
    # frombuffer() refuses an empty buffer.
    return torch.frombuffer(buffer, dtype=torch.uint8) if len(buffer) else torch.empty(0, dtype=torch.uint8)
