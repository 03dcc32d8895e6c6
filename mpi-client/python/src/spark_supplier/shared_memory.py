"""The shared memory of a node: how large it is, whose limits it counts against, and what to do when it is full."""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterator

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


# In control groups of versions 2 and 1: limit, usage, and in memory.stat files with and without shared memory.
_OF_VERSIONS = (
    ("memory.max", "memory.current", "file", "shmem"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"),
)
# Version 1 says "no limit" by a number that no machine reaches.
_NO_LIMIT = 1 << 60


def control_groups(controller: str, root: str = "/") -> Iterator[pathlib.Path]:
    """Folders of this process's groups and of those above them, versions 1 and 2, as far as a container sees them.

    root: of the folders proc and sys. Tests hand in another one.
    """
    mounts = pathlib.Path(root, "sys/fs/cgroup")
    try:
        lines = pathlib.Path(root, "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            tops = [mounts, mounts / "unified"]
        elif controller in controllers.split(","):
            tops = [mounts / controller]
        else:
            continue
        for top in tops:
            # A container may see the path of its group, and has the group itself at the top.
            group = top / path.lstrip("/")
            yield group
            yield from (parent for parent in group.parents if parent == top or top in parent.parents)


def container_memory(root: str = "/") -> tuple[int, int] | None:
    """The memory limit of which the least is left, and what is left, in bytes. None: there is no limit.

    The pages of shared memory count against it. Files that the kernel can drop do not.
    """
    found = []
    for folder, names in itertools.product(control_groups("memory", root), _OF_VERSIONS):
        limit_file, used_file, cached, shared = names
        try:
            limit, used = (int((folder / name).read_text(encoding="utf-8")) for name in (limit_file, used_file))
            words = (line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines())
            statistics = {name: int(number) for name, number in words}
        except (OSError, ValueError):
            continue
        if limit < _NO_LIMIT:
            droppable = statistics.get(cached, 0) - statistics.get(shared, 0)
            found.append((limit, max(0, limit - used + max(0, droppable))))
    return min(found, key=lambda of_group: of_group[1], default=None)
