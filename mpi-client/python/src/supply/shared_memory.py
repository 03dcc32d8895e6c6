"""The shared memory of a node: how large it is, whose limits it counts against, and what to do when it is full."""

from __future__ import annotations

import os
import pathlib

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


# Of a container, as it sees its control group: limit, usage, and in memory.stat files with and without shared memory.
_OF_VERSIONS = (
    ("", "memory.max", "memory.current", "file", "shmem"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"),
)
# Version 1 says "no limit" by a number that no machine reaches.
_NO_LIMIT = 1 << 60


def container_memory(groups: str = "/sys/fs/cgroup") -> tuple[int, int] | None:
    """The memory limit of this container, and what of it is left, in bytes. None: there is no limit.

    The pages of shared memory count against it. Files that the kernel can drop do not.
    """
    for controller, limit_file, used_file, cached, shared in _OF_VERSIONS:
        folder = pathlib.Path(groups, controller)
        try:
            limit = int((folder / limit_file).read_text(encoding="utf-8"))
            used = int((folder / used_file).read_text(encoding="utf-8"))
            words = (line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines())
            statistics = {name: int(number) for name, number in words}
        except (OSError, ValueError):
            continue
        if limit < _NO_LIMIT:
            droppable = statistics.get(cached, 0) - statistics.get(shared, 0)
            return limit, max(0, limit - used + max(0, droppable))
    return None
