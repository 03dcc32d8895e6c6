"""A rank of mpirun: `python -m supply.ranks.mpi_rank [SERVER...]` prepares the node, and is the rank, or the server."""

from __future__ import annotations

import os
import signal
import sys

from supply.ranks import rank
from supply.ranks.hub import KEY, connect
from supply.ranks.messages import RankStarted
from supply.ranks.mpi_node import prepare_rank
from supply_launch.signals import end_with_parent


def become_server(server: list[str]) -> None:
    end_with_parent(int(os.environ.pop("SUPPLY_PARENT")), signal.SIGKILL)
    driver = connect()
    # Routines, and tools that record the environment, must not get it.
    del os.environ[KEY]
    driver.send(RankStarted(int(os.environ["RANK"]), os.environ["SUPPLY_HOST"], 0))
    # The server never uses the connection: its end tells the driver that the rank has ended.
    driver.keep_for_program()
    os.execv(server[0], server)


if __name__ == "__main__":
    if not prepare_rank():
        sys.exit(1)
    if sys.argv[1:]:
        become_server(sys.argv[1:])
    sys.exit(rank.main())
