"""The exchange's collective operations over mpi4py."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mpi4py import MPI

from spark_supplier.errors import SupplyError, SupplyTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_supplier.exchange import Parts

_PAUSE_SECONDS = 50e-6

# If the wait for a copy has failed, and the other processes come later, MPI still writes into it.
_kept: list[tuple[MPI.Comm, MPI.Request]] = []


def _copy(comm: MPI.Comm, limit: float) -> MPI.Comm:
    """Not Dup(), which waits for ever and lets no signal handler run."""
    end = time.monotonic() + limit
    pending = copy, request = comm.Idup()
    _kept.append(pending)
    while not request.Test():
        if time.monotonic() >= end:
            raise SupplyTimeoutError(
                f"another rank has not opened its exchange for {limit:g} s: has it failed, or opened its pairs in "
                "another order? (timeout / SUPPLY_TIMEOUT)"
            )
        time.sleep(_PAUSE_SECONDS)
    _kept.remove(pending)
    return copy


class MpiTransport:
    """A Transport over a copy of the communicator.

    The calls that begin an operation return its number. Buffers must stay as they are until test() has returned True.
    """

    def __init__(self, comm: MPI.Comm, limit: float) -> None:
        """Collective.

        limit: seconds to wait for the other ranks.
        """
        self._use(_copy(comm, limit))

    def _use(self, comm: MPI.Comm) -> None:
        self._comm = comm
        # Other threads may call MPI only if MPI has been initialized for that. The workers' server is one.
        self.any_thread: bool = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._thread = None if self.any_thread else threading.get_ident()
        self.rank: int = comm.rank
        self.ranks: int = comm.size
        # By number of the operation.
        self._requests: list[MPI.Request] = []
        self._free: list[int] = []
        self._end_key = MPI.KEYVAL_INVALID

    def split(self, ranks: list[int]) -> MpiTransport:
        """Among some of the ranks, in this order. All of them call it."""
        every = self._own().Get_group()
        some = every.Incl(ranks)
        part = MpiTransport.__new__(MpiTransport)
        part._use(self._comm.Create_group(some))
        some.Free()
        every.Free()
        return part

    def allgather(self, send: memoryview, receive: memoryview) -> int:
        return self._begun(self._own().Iallgather([send, MPI.BYTE], [receive, MPI.BYTE]))

    def alltoall(self, send: memoryview, receive: memoryview) -> int:
        return self._begun(self._own().Ialltoall([send, MPI.BYTE], [receive, MPI.BYTE]))

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> int:
        return self._begun(
            self._own().Ialltoallv(
                [send, *_counts_and_places(send_parts), MPI.BYTE],
                [receive, *_counts_and_places(receive_parts), MPI.BYTE],
            )
        )

    def test(self, operation: int) -> bool:
        """Whether the operation is complete. Its number is free then. -1: there is none; MPI moves data."""
        comm = self._own()
        if operation < 0:
            comm.Iprobe()
            return True
        if not self._requests[operation].Test():
            return False
        self._free.append(operation)
        return True

    def on_end(self, end: Callable[[], object] | None) -> None:
        """MPI.Finalize() calls end() first."""
        if end is not None:
            self._end_key = MPI.Comm.Create_keyval(delete_fn=lambda *_: end())
            MPI.COMM_SELF.Set_attr(self._end_key, True)
        elif not MPI.Is_finalized():
            self._end_key, key = MPI.KEYVAL_INVALID, self._end_key
            MPI.COMM_SELF.Delete_attr(key)
            MPI.Comm.Free_keyval(key)

    def close(self) -> None:
        if not MPI.Is_finalized():
            self._comm.Free()

    def _begun(self, request: MPI.Request) -> int:
        if not self._free:
            self._requests.append(request)
            return len(self._requests) - 1
        number = self._free.pop()
        self._requests[number] = request
        return number

    def _own(self) -> MPI.Comm:
        """The communicator, for a thread that may call MPI."""
        if MPI.Is_finalized():
            raise SupplyError(
                "the program has called MPI.Finalize() while it has blocks to receive: close the supply first"
            )
        if self._thread not in (None, threading.get_ident()):
            raise SupplyError(
                "another thread than the one that opened this supply reads, but MPI is not initialized with "
                "MPI_THREAD_MULTIPLE (mpi4py.rc.thread_level): set num_workers=0, or read in the thread that opened"
            )
        return self._comm


def _counts_and_places(parts: Parts) -> tuple[list[int], list[int]]:
    return [size for _, size in parts], [offset for offset, _ in parts]
