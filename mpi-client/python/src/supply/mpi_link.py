"""Messages between feeders and the ranks that they supply, over mpi4py."""

from __future__ import annotations

from mpi4py import MPI

from supply.own_communicator import OwnCommunicator

_ABSENT = (
    "a process of the communicator has not called supply.open(feeders=...), and is no feeder, for {}: has it failed, "
    "or is it another program? (timeout / SUPPLY_TIMEOUT)"
)


class MpiLink(OwnCommunicator):
    """A link (mpi-client/remote/link.h) over a copy of the communicator.

    The calls that begin an operation return its number. The buffer must stay as it is until test() has returned True.
    """

    def __init__(self, comm: MPI.Comm, limit: float) -> None:
        """limit: seconds to wait for the other processes."""
        super().__init__(comm, limit, _ABSENT)
        self.process: int = self._comm.rank
        self.processes: int = self._comm.size
        # By number of the operation.
        self._requests: list[MPI.Request] = []
        self._free: list[int] = []

    def send(self, to: int, tag: int, buffer: memoryview) -> int:
        """Complete when the receiver has begun to receive."""
        self._check_thread()
        return self._begun(self._comm.Issend([buffer, MPI.BYTE], to, tag))

    def receive(self, source: int, tag: int, buffer: memoryview) -> int:
        """The next message of that process with that tag, of at most as many bytes as the buffer has."""
        self._check_thread()
        return self._begun(self._comm.Irecv([buffer, MPI.BYTE], source, tag))

    def allgather(self, send: memoryview, receive: memoryview) -> int:
        """The same number of bytes of each process."""
        self._check_thread()
        return self._begun(self._comm.Iallgather([send, MPI.BYTE], [receive, MPI.BYTE]))

    def test(self, operation: int) -> bool:
        """Whether the operation is complete. Its number is free then."""
        self._check_thread()
        if not self._requests[operation].Test():
            return False
        self._free.append(operation)
        return True

    def _begun(self, request: MPI.Request) -> int:
        if not self._free:
            self._requests.append(request)
            return len(self._requests) - 1
        number = self._free.pop()
        self._requests[number] = request
        return number
