"""The exchange's collective operations over mpi4py."""

from __future__ import annotations

import threading
import time

from mpi4py import MPI

from supply.errors import SupplyError, SupplyTimeoutError
from supply.exchange import Parts

_PAUSE_SECONDS = 50e-6

# If the wait for a copy has failed, and the other ranks come later, MPI still writes into it.
_kept: list[tuple[MPI.Comm, MPI.Request]] = []


class MpiTransport:
    """A Transport over a copy of the communicator, so that it does not meet the program's own messages."""

    def __init__(self, comm: MPI.Comm, limit: float) -> None:
        """limit: seconds to wait for the other ranks."""
        self._comm = _copy(comm, limit)
        self.rank: int = self._comm.rank
        self.ranks: int = self._comm.size
        self._request = MPI.REQUEST_NULL
        # Other threads may call MPI only if MPI has been initialized for that. The workers' server is one.
        self._thread = None if MPI.Query_thread() == MPI.THREAD_MULTIPLE else threading.get_ident()

    def allgather(self, send: memoryview, receive: memoryview) -> None:
        self._check_thread()
        self._request = self._comm.Iallgather([send, MPI.BYTE], [receive, MPI.BYTE])

    def alltoall(self, send: memoryview, receive: memoryview) -> None:
        self._check_thread()
        self._request = self._comm.Ialltoall([send, MPI.BYTE], [receive, MPI.BYTE])

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> None:
        self._check_thread()
        self._request = self._comm.Ialltoallv(
            [send, *_counts_and_places(send_parts), MPI.BYTE], [receive, *_counts_and_places(receive_parts), MPI.BYTE]
        )

    def poll(self) -> bool:
        self._check_thread()
        return bool(self._request.Test())

    def close(self) -> None:
        if not MPI.Is_finalized():
            self._comm.Free()

    def _check_thread(self) -> None:
        if self._thread not in (None, threading.get_ident()):
            raise SupplyError(
                "another thread than the one that opened the exchange reads, but MPI is not initialized with "
                "MPI_THREAD_MULTIPLE (mpi4py.rc.thread_level): set num_workers=0, or read in the thread that opened"
            )


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


def _counts_and_places(parts: Parts) -> tuple[list[int], list[int]]:
    return [size for _, size in parts], [offset for offset, _ in parts]
