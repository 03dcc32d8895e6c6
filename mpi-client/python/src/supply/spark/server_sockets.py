"""Waits until the ranks of a supply-server can be reached."""

from __future__ import annotations

import queue
import time
from typing import Any

from supply.errors import SupplierError
from supply.ranks.run_files import RunFiles

_POLL_SECONDS = 0.02


def wait_for_sockets(files: RunFiles, ended: queue.SimpleQueue[Any], timeout: float) -> None:
    """Returns when all sockets are there. ended: gets MpirunEnded. Raises SupplierError if a rank does not start."""
    end = time.monotonic() + timeout
    while missing := [i for i in range(files.pairs) if not (files.pair_folder / f"matrix-{i}.mapped.server").exists()]:
        if not ended.empty():
            mpirun = ended.get()
            # For who waits for its end.
            ended.put(mpirun)
            raise SupplierError(
                f"supply-server did not start: mpirun failed with status {mpirun.status}: {mpirun.text}"
            )
        if time.monotonic() > end:
            raise SupplierError(f"rank {missing[0]} of supply-server did not start within {timeout:g} s")
        time.sleep(_POLL_SECONDS)
