"""torch.distributed for a rank's function."""

from __future__ import annotations

import contextlib
import os
import socket
import time

# Rank 0 may still load PyTorch. Later PyTorch itself waits.
_STORE_SECONDS = 10
_RETRY_SECONDS = 0.05


def free_port() -> int:
    """A TCP port that is free now, for MASTER_PORT."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def init_process_group(backend: str | None) -> None:
    """Initializes the default process group. backend: "auto" is nccl with CUDA, else gloo; None: does nothing."""
    if backend is None:
        return
    import torch
    from torch import distributed

    local_rank = int(os.environ["LOCAL_RANK"])
    if backend == "auto":
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(local_rank)
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        # gloo would use the interface of the host name, which may not resolve.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if os.environ["RANK"] != "0":
        wait_for_rank_0(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    distributed.init_process_group(backend)


def wait_for_rank_0(host: str, port: int) -> None:
    """Until rank 0 listens. PyTorch would sleep for a second after a refused connection."""
    end = time.monotonic() + _STORE_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), _STORE_SECONDS).close()
            return
        time.sleep(_RETRY_SECONDS)


def end_process_group() -> None:
    """A function may have ended it, too."""
    import sys

    if "torch.distributed" in sys.modules:
        from torch import distributed

        if distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
