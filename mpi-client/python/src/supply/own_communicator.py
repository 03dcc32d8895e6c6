"""A copy of an mpi4py communicator, so that messages of this package do not meet those of the program."""

from __future__ import annotations

import threading
import time

from mpi4py import MPI

from supply.errors import SupplyError, SupplyTimeoutError

_PAUSE_SECONDS = 50e-6

# If the wait for a copy has failed, and the other processes come later, MPI still writes into it.
_kept: list[tuple[MPI.Comm, MPI.Request]] = []


class OwnCommunicator:
    """What a Transport and a link over MPI share."""

    def __init__(self, comm: MPI.Comm, limit: float, absent: str) -> None:
        """Collective.

        limit: seconds to wait for the other processes.
        absent: what another one has not done when they have passed, and why not, with a place for the seconds.
        """
        self._comm = _copy(comm, limit, absent)
        # Other threads may call MPI only if MPI has been initialized for that. The workers' server is one.
        self._thread = None if MPI.Query_thread() == MPI.THREAD_MULTIPLE else threading.get_ident()

    def close(self) -> None:
        if not MPI.Is_finalized():
            self._comm.Free()

    def _check_thread(self) -> None:
        if self._thread not in (None, threading.get_ident()):
            raise SupplyError(
                "another thread than the one that opened this supply reads, but MPI is not initialized with "
                "MPI_THREAD_MULTIPLE (mpi4py.rc.thread_level): set num_workers=0, or read in the thread that opened"
            )


def _copy(comm: MPI.Comm, limit: float, absent: str) -> MPI.Comm:
    """Not Dup(), which waits for ever and lets no signal handler run."""
    end = time.monotonic() + limit
    pending = copy, request = comm.Idup()
    _kept.append(pending)
    while not request.Test():
        if time.monotonic() >= end:
            raise SupplyTimeoutError(absent.format(f"{limit:g} s"))
        time.sleep(_PAUSE_SECONDS)
    _kept.remove(pending)
    return copy
