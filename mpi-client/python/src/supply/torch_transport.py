"""The exchange's collective operations over torch.distributed."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from supply.errors import ConfigError, SupplyTimeoutError

if TYPE_CHECKING:
    from supply.exchange import Parts

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

    def allgather(self, send: memoryview, receive: memoryview) -> None:
        pieces = list(_tensor(receive).chunk(self.ranks))
        self._works = [self._group.allgather([pieces], [_tensor(send)])]

    def alltoall(self, send: memoryview, receive: memoryview) -> None:
        self._works = [self._group.alltoall_base(_tensor(receive), _tensor(send), [], [])]

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> None:
        """alltoall_base() knows no gaps, but a rank may receive with a gap for its own elements (transport.h). So there
        are two operations: to the rank itself and those with higher numbers, and to those with lower numbers.
        """
        below, above = range(self.rank), range(self.rank, self.ranks)
        up, down = range(self.rank + 1), range(self.rank + 1, self.ranks)
        self._works = [
            self._begin(send, _only(above, send_parts), receive, _only(up, receive_parts)),
            self._begin(send, _only(below, send_parts), receive, _only(down, receive_parts)),
        ]

    def poll(self) -> bool:
        if not all(work.is_completed() for work in self._works):
            return False
        for work in self._works:
            # Raises the error of a failed one.
            work.wait()
        self._works = []
        return True

    def close(self) -> None:
        """The group goes with the program's other groups."""

    def _begin(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> Any:
        return self._group.alltoall_base(
            _tensor(_span(receive, receive_parts)),
            _tensor(_span(send, send_parts)),
            [size for _, size in receive_parts],
            [size for _, size in send_parts],
        )


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


def _only(ranks: range, parts: Parts) -> Parts:
    """The parts of these ranks; those of the others are empty."""
    return [part if rank in ranks else (0, 0) for rank, part in enumerate(parts)]


def _span(buffer: memoryview, parts: Parts) -> memoryview:
    """The bytes of the parts, which have no gaps between them."""
    begins = [offset for offset, size in parts if size]
    return buffer[min(begins) :][: sum(size for _, size in parts)] if begins else buffer[:0]


def _tensor(buffer: memoryview) -> torch.Tensor:
    # frombuffer() refuses an empty buffer.
    return torch.frombuffer(buffer, dtype=torch.uint8) if len(buffer) else torch.empty(0, dtype=torch.uint8)
