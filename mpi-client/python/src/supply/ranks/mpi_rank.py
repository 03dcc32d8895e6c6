"""A rank of mpirun: `python -m supply.ranks.mpi_rank` prepares the node and its environment, and is the rank."""

from __future__ import annotations

import sys

from supply.ranks import rank
from supply.ranks.mpi_node import prepare_rank

if __name__ == "__main__":
    sys.exit(rank.main() if prepare_rank() else 1)
