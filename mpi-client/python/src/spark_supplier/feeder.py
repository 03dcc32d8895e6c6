"""An MPI job in which some processes feed the ranks (docs/FEEDERS.md): the ranks' side, and `python -m` of this module.

That is supply-feeder, with the MPI of mpi4py: the same options, output and exit status.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import dataclass
from typing import Any

import spark_supplier
from spark_supplier import _core
from spark_supplier.arguments import limit_of
from spark_supplier.errors import ConfigError

_USAGE = "mpirun -n 2 --host cpu-1:1,cpu-2:1 python -m spark_supplier.feeder [options] : -n RANKS --host NODES PROGRAM"
_DESCRIPTION = """\
Not --hostfile hosts: its slots count pairs.
Opens pairs on this node, which Spark fills, and sends their blocks to the ranks of PROGRAM, which read them with
ranks.open(feeders=MPI.COMM_WORLD). The Supplier's --ranks is the larger one of the feeders' number and RANKS."""
_EXIT_STATUS = (
    "Exit status: 0 if no pair failed, 1 if one did, 2 on a wrong option. A pair that its rank stops has not failed."
)


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

    from spark_supplier.mpi import ABSENT_PEER, MpiTransport

    limit = limit_of(timeout)
    return _core.Meeting(MpiTransport(comm, limit, ABSENT_PEER), is_feeder, MPI.Get_processor_name(), limit)


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


def main() -> int:
    """Returns the exit status."""
    options = _options()
    from mpi4py import MPI

    try:
        meeting = meet(MPI.COMM_WORLD, options.timeout, is_feeder=True)
        fed = meeting.feed(options.mapped_files, options.named_pipes, options.group or "")
        elements, size, failed, pairs, first = fed
    except Exception as error:
        # The ranks would wait for this feeder.
        _say(str(error))
        MPI.COMM_WORLD.Abort(1)
    sent = f"{elements} elements, {size / 1e9:.3f} GB"
    _say(f"node {MPI.Get_processor_name()} sent {sent}, of {pairs} pairs (from {first})")
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "supply-feeder", _USAGE, _DESCRIPTION, _EXIT_STATUS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    files = ("--mapped-files", "SUPPLY_MAPPED_FILES"), ("--named-pipes", "SUPPLY_NAMED_PIPES")
    for option, variable in files:
        parser.add_argument(
            option,
            metavar="FILE",
            default=os.environ.get(variable),
            help=f"{option.strip('-')}.conf (default: {variable})",
        )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long to wait for the ranks at the start and at the end (default: SUPPLY_TIMEOUT, or 120; a pair has "
        "the timeout of its rank)",
    )
    parser.add_argument(
        "--group",
        metavar="NAME",
        help="group whose members may also fill the pairs (default: group= of the line, or none)",
    )
    version = f"supply-feeder {spark_supplier.__version__} (contract {_core.contract_version})"
    parser.add_argument("--version", action="version", version=version)
    options = parser.parse_args()
    for option, variable in files:
        if getattr(options, option.strip("-").replace("-", "_")) is None:
            parser.exit(2, f"supply-feeder: no {option} given: set it, or {variable}\n")
    return options


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError
    return seconds


# argparse names the type in its message.
_seconds.__name__ = "number of seconds larger than 0"


def _say(line: str) -> None:
    print(f"supply-feeder: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
