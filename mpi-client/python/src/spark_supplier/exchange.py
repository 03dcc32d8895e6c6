"""The exchange between ranks: its options, and which communicator it uses."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union, runtime_checkable

from spark_supplier import _core
from spark_supplier.arguments import limit_of, optional_size
from spark_supplier.errors import ConfigError
from spark_supplier.pair import ExchangeStatistics

_log = logging.getLogger("spark_supplier")

PolicyName = Literal["supplied", "all", "hash", "balance", "range"]

# Offset and bytes of each rank's part of a buffer, in the order of ranks.
Parts = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Exchange:
    """Which row goes to which rank. All ranks must set the same, but for messages_only.

    Parameters
    ----------
    policy : {"supplied", "all", "hash", "balance", "range"}, default "supplied"
        "supplied": what Spark says (shuffle=all). "all": each window in a random order is dealt to the ranks in turn.
        "hash": rows with the same value in `column` go to the same rank. "balance": only surplus moves. With "all" and
        "balance" every rank receives the same number of rows of each window, and may receive one more of an epoch's
        last window. "range": the rows of rank 0 in the order of `column`, then those of rank 1, and so on; a rank gets
        its first block when the whole epoch has arrived.
    column : str, optional
        With "hash" and "range", the column whose values decide. It must not be nullable, unless nulls_together is set.
    nulls_together : bool, default False
        With "hash" and "range", rows whose value is null form one group, with "range" the last one.
    fraction : float, optional
        With "all", the part of each window that is dealt, above 0 and at most 1; the rest stays. Default: 1.
    seed : int, default 0
        With "all", the seed of the order.
    window : int or str, optional
        What a rank contributes to one exchange: bytes, or a text as "1MiB". Default: half of the buffer.
    memory : int or str, optional
        With "range", what a rank keeps in memory of an epoch; more goes to spill_folder, sorted. Default: 1 GiB.
    spill_folder : str or path, optional
        With "range", where the rest goes. Default: TMPDIR, or /tmp.
    messages_only : bool, default False
        Ranks that can map each other's memory (one machine, one user, one namespace of processes) copy their rows into
        it. True: this rank takes no part in that. Ranks may differ in it.

    Raises
    ------
    ConfigError
        A value is wrong.

    Examples
    --------
    >>> from spark_supplier.ranks import Exchange
    >>> Exchange("hash", column="user").column
    'user'
    """

    policy: PolicyName = "supplied"
    column: str | None = None
    nulls_together: bool = False
    fraction: float | None = None
    seed: int = 0
    window: int | str | None = None
    memory: int | str | None = None
    spill_folder: str | os.PathLike[str] | None = None
    messages_only: bool = False

    def __post_init__(self) -> None:
        if self.policy not in _core.exchange_policies:
            raise ConfigError(f"exchange is {self.policy!r}, must be one of {', '.join(_core.exchange_policies)}")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise ConfigError(f"fraction is {self.fraction}, must be above 0 and at most 1")
        if not 0 <= self.seed < 2**64:
            raise ConfigError(f"seed is {self.seed}, must be from 0 to {2**64 - 1}")
        optional_size("window", self.window)
        optional_size("memory", self.memory)

    def _open(self, pair: _core.Pair, transport: Transport) -> None:
        """From now on the pair's blocks have elements of all ranks. Collective."""
        pair.exchange(
            transport,
            policy=_core.exchange_policies[self.policy],
            column=self.column or "",
            nulls_together=self.nulls_together,
            fraction=self.fraction or 0,
            seed=self.seed,
            window_bytes=optional_size("window", self.window) or 0,
            memory_bytes=optional_size("memory", self.memory) or 0,
            spill_folder=os.fspath(self.spill_folder or ""),
            messages_only=self.messages_only,
        )
        if transport.rank == 0:
            _log.info("%s", self._line(ExchangeStatistics(*pair.statistics[-1])))

    def _line(self, opened: ExchangeStatistics) -> str:
        sending = opened.ranks - 1 - opened.copying_ranks - opened.forwarded_ranks
        levels = f", through two levels to {opened.forwarded_ranks}" if opened.forwarded_ranks else ""
        key = f" by '{self.column}'" if self.column else ""
        order = f", seed {self.seed}" if self.policy == "all" else ""
        return (
            f"exchange: {opened.ranks} ranks; rank 0 copies to {opened.copying_ranks}, sends to {sending}{levels}; "
            f"windows of {opened.window_bytes / 2**20:.3g} MiB; {self.policy}{key}{order}"
        )


Policy = Union[Exchange, PolicyName]


@runtime_checkable
class Transport(Protocol):
    """Collective operations between ranks (mpi-client/mpi/transport.h). An operation is begun, which returns its
    number, and then tested until it is complete. At most one is under way. An exception ends the exchange with its
    text.

    If it has split(ranks), nodes with equally many ranks exchange in two levels: split() returns a Transport among some
    of the ranks, in this order; all of them call it. If any_thread is there and True, a thread of the exchange calls
    the methods, too, but never two threads at a time. If it has on_end(end), it calls end() if messages end before the
    interpreter does, until on_end(None).
    """

    rank: int
    ranks: int

    def allgather(self, send: memoryview, receive: memoryview) -> int:
        """Begins to send the same bytes to each rank."""

    def alltoall(self, send: memoryview, receive: memoryview) -> int:
        """Begins to send one piece to each rank. All have the same size."""

    def alltoallv(self, send: memoryview, send_parts: Parts, receive: memoryview, receive_parts: Parts) -> int:
        """Begins to send one part to each rank."""

    def test(self, operation: int) -> bool:
        """Whether the operation is complete. -1: there is none; MPI may move data meanwhile."""

    def close(self) -> None:
        """No operation is under way, and none will follow."""


def exchange_of(policy: Policy) -> Exchange:
    if not isinstance(policy, (str, Exchange)):
        raise ConfigError(
            f"exchange is {policy!r}, must be a name as 'supplied' or 'all', or a spark_supplier.ranks.Exchange"
        )
    return Exchange(policy) if isinstance(policy, str) else policy


def transport_over(comm: Any = None, timeout: float | None = None) -> Transport:
    """A transport over an mpi4py communicator or a torch.distributed group. Collective.

    comm: None: torch.distributed's default group if it is initialized, else MPI.COMM_WORLD if mpi4py is imported.
    timeout: of the pair. The call waits for the other ranks for twice that time.
    """
    mpi, distributed = sys.modules.get("mpi4py.MPI"), sys.modules.get("torch.distributed")
    if distributed is not None and not distributed.is_available():
        distributed = None
    if comm is None and distributed is not None and distributed.is_initialized():
        comm = distributed.group.WORLD
    elif comm is None and mpi is not None:
        comm = mpi.COMM_WORLD
    if comm is None:
        raise ConfigError(
            "an exchange needs a communicator of all ranks: set comm=, or first initialize torch.distributed or import "
            "mpi4py.MPI"
        )
    if isinstance(comm, Transport):
        return comm
    if mpi is not None and isinstance(comm, mpi.Comm):
        from spark_supplier.mpi import MpiTransport

        return MpiTransport(comm, limit_of(timeout))
    if distributed is not None and isinstance(comm, distributed.ProcessGroup):
        from spark_supplier.torch_transport import TorchTransport

        return TorchTransport(comm, limit_of(timeout))
    raise ConfigError(
        f"comm is {comm!r}, must be a communicator of mpi4py or a group of torch.distributed with this rank in it"
    )
