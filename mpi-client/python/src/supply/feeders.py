"""The ranks of an MPI job in which other processes may be feeders."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from supply import _core
from supply.errors import ConfigError
from supply.exchange import limit_of


@dataclass(frozen=True)
class Job:
    """What a rank knows of all processes.

    comm: an mpi4py communicator of the ranks, without the feeders.
    meeting: with the feeders, which open the rank's pairs once. None: there are none.
    """

    comm: Any
    meeting: _core.Meeting | None


def meet(comm: Any, timeout: float | None, is_feeder: bool) -> _core.Meeting:
    """All processes tell each other what they are. Collective."""
    from mpi4py import MPI

    from supply.mpi_link import MpiLink

    limit = limit_of(timeout)
    return _core.Meeting(MpiLink(comm, limit), is_feeder, MPI.Get_processor_name(), limit)


def job_of(feeders: Any, timeout: float | None) -> Job:
    """feeders: the option of open(): a communicator with all ranks and feeders, or a Job. Collective."""
    mpi = sys.modules.get("mpi4py.MPI")
    if isinstance(feeders, Job):
        return feeders
    if mpi is None or not isinstance(feeders, mpi.Comm):
        raise ConfigError(
            f"feeders is {feeders!r}, must be a communicator of mpi4py with all ranks and feeders: MPI.COMM_WORLD"
        )
    meeting = meet(feeders, timeout, is_feeder=False)
    every = feeders.Get_group()
    ranks = every.Incl(meeting.ranks)
    comm = feeders.Create_group(ranks)
    ranks.Free()
    every.Free()
    return Job(comm, meeting if meeting.feeders else None)
