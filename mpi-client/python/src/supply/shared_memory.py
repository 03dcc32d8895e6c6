"""The shared memory of a node: how large it is, and what to do when it is full."""

from __future__ import annotations

import os

# PyTorch's workers use it, and the runs' rings unless Supplier(folder=...) names another folder.
FOLDER = "/dev/shm"


def space(folder: str = FOLDER) -> tuple[int | None, int | None]:
    """Bytes in all, and free ones. None: without a limit."""
    found = os.statvfs(folder)
    # A tmpfs without a limit has no blocks.
    if found.f_blocks == 0:
        return None, None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def fix(host: str, folder: str = FOLDER) -> str:
    """How large it is, and what to do."""
    total, free = space(folder)
    size = "no limit" if total is None or free is None else f"{total >> 20} MiB, and {free >> 20} MiB are free"
    return (
        f"{folder} on {host} has {size}. Make it larger (docker run --shm-size=..., an emptyDir of medium Memory on "
        "Kubernetes), or let less lie there: the rings of ranks (Supplier(ring=...)), and the batches of DataLoader "
        "workers (num_workers, prefetch_factor, batch_size)"
    )
