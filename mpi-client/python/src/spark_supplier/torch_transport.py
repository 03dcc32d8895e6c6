"""The exchange's collective operations over torch.distributed."""

from __future__ import annotations

import os
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

_TOKEN_BYTES = 16


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
        self._use(group, limit)

    def _use(self, group: distributed.ProcessGroup, limit: float) -> None:
        self._group = group
        self._limit = limit
        self.any_thread = True
        self.rank: int = group.rank()
        self.ranks: int = group.size()
        # Of the operation that is under way.
        self._work: Any = None

    def split(self, ranks: list[int]) -> TorchTransport:
        """Among some of the ranks, in this order. All ranks of the group call it together, each with its own list."""
        token = _tensor(memoryview(bytearray(os.urandom(_TOKEN_BYTES))))
        tokens = [torch.empty_like(token) for _ in range(self.ranks)]
        self._group.allgather([tokens], [token]).wait()
        # new_group() would wait for all ranks of the default group, for each group that any of them needs.
        name = f"spark_supplier/{bytes(tokens[ranks[0]]).hex()}"
        store = distributed.PrefixStore(name, distributed.distributed_c10d._get_default_store())
        part = TorchTransport.__new__(TorchTransport)
        timeout = timedelta(seconds=self._limit + _MARGIN_SECONDS)
        part._use(distributed.ProcessGroupGloo(store, ranks.index(self.rank), len(ranks), timeout), self._limit)
        return part

    def allgather(self, send: memoryview, receive: memoryview) -> int:
        pieces = list(_tensor(receive).chunk(self.ranks))
        self._work = self._group.allgather([pieces], [_tensor(send)])
        return 0

    def alltoall(self, send: memoryview, receive: memoryview) -> int:
        self._work = self._group.alltoall_base(_tensor(receive), _tensor(send), [], [])
        return 0

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> int:
        sizes = [size for _, size in receive_parts], [size for _, size in send_parts]
        if sum(sizes[1]) != len(send):
            # Several parts are the same bytes.
            send = memoryview(bytearray().join(send[offset:][:size] for offset, size in send_parts))
        self._work = self._group.alltoall_base(_tensor(receive), _tensor(send), *sizes)
        return 0

    def test(self, operation: int) -> bool:
        if operation < 0:
            return True
        if not self._work.is_completed():
            return False
        # Raises the error of a failed one.
        self._work.wait()
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


def _tensor(buffer: memoryview) -> torch.Tensor:
    # frombuffer() refuses an empty buffer.
    return torch.frombuffer(buffer, dtype=torch.uint8) if len(buffer) else torch.empty(0, dtype=torch.uint8)
