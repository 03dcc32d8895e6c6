"""The exchange's collective operations over mpi4py."""

from __future__ import annotations

from mpi4py import MPI

from supply.exchange import Parts
from supply.own_communicator import OwnCommunicator

_ABSENT = (
    "another rank has not opened its exchange for {}: has it failed, or opened its pairs in another order? "
    "(timeout / SUPPLY_TIMEOUT)"
)


class MpiTransport(OwnCommunicator):
    """A Transport over a copy of the communicator."""

    def __init__(self, comm: MPI.Comm, limit: float) -> None:
        """limit: seconds to wait for the other ranks."""
        super().__init__(comm, limit, _ABSENT)
        self.rank: int = self._comm.rank
        self.ranks: int = self._comm.size
        self._request = MPI.REQUEST_NULL

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


def _counts_and_places(parts: Parts) -> tuple[list[int], list[int]]:
    return [size for _, size in parts], [offset for offset, _ in parts]
