"""A rank of mpirun: `python -m spark_supplier.node.mpi_rank [SERVER...]` prepares the node and is the rank."""

from __future__ import annotations

import os
import signal
import sys

from spark_supplier.launch.signals import end_with_parent
from spark_supplier.node import rank
from spark_supplier.node.hub import KEY, connect
from spark_supplier.node.messages import RankStarted
from spark_supplier.node.mpi_node import prepare_rank


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
