"""Only rank 0 opens its exchange at first. Its wait must end.

Arguments: mpi or torch, folder, signal or limit: by what its wait ends.
"""

import os
import pathlib
import signal
import sys

import pytest
import spark_supplier
from spark_supplier.exchange import transport_over

from task import HANG_SECONDS, wait_until

over, folder, end = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
if over == "mpi":
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
else:
    import torch.distributed

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)

if rank == 0:
    if end == "signal":
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            transport_over(timeout=HANG_SECONDS)
    else:
        with pytest.raises(spark_supplier.SupplyTimeoutError, match="another rank has not opened its exchange for 1 s"):
            transport_over(timeout=0.5)
    (folder / "failed").touch()
else:
    wait_until("the failure of rank 0", (folder / "failed").exists)
if over == "mpi":
    # MPI cannot take back a collective operation, and ends only after all ranks have completed it.
    if rank == 0:
        ((_, pending),) = spark_supplier.mpi._kept
        pending.Wait()
    else:
        transport_over(timeout=HANG_SECONDS)
