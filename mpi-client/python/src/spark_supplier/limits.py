"""Limits of a node and of a container: shared memory, memory, threads and cores, and what to do when they are met."""

from __future__ import annotations

import errno
import math
import os
import pathlib
import resource
import traceback
from collections.abc import Iterator

# PyTorch's workers use it, and the runs' rings unless Supplier(folder=...) names another folder.
FOLDER = "/dev/shm"
# Version 1 says "no limit" by a number that no machine reaches.
_NO_LIMIT = 1 << 60


def space(folder: str = FOLDER) -> tuple[int | None, int | None]:
    """Bytes in all, and free ones. None: without a limit."""
    found = os.statvfs(folder)
    # A tmpfs without a limit has no blocks.
    if found.f_blocks == 0:
        return None, None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def more_space(host: str, folder: str = FOLDER) -> str:
    """How large it is, and what to do."""
    total, free = space(folder)
    size = "no limit" if total is None or free is None else f"{total >> 20} MiB, and {free >> 20} MiB are free"
    return (
        f"{folder} on {host} has {size}. Make it larger (docker run --shm-size=..., an emptyDir of medium Memory on "
        "Kubernetes), or let less lie there: the rings of ranks (Supplier(ring=...)), and the batches of DataLoader "
        "workers (num_workers, prefetch_factor, batch_size)"
    )


def _groups(controller: str, root: str) -> Iterator[pathlib.Path]:
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


def _limits(controller: str, versions: tuple[str, ...], root: str) -> Iterator[tuple[pathlib.Path, list[int]]]:
    """The folder of each group with a limit, and the numbers of its files. versions: the files of each one."""
    for folder in _groups(controller, root):
        for files in versions:
            try:
                words = [word for file in files.split() for word in (folder / file).read_text("utf-8").split()]
                yield folder, [int(word) for word in words]
            except (OSError, ValueError):
                # There is no limit ("max"), or no such group.
                continue


def container_memory(root: str = "/") -> tuple[int, int] | None:
    """The memory limit of which the least is left, and what is left, in bytes. None: there is no limit.

    The pages of shared memory count against it. Files that the kernel can drop do not.
    """
    found = []
    versions = ("memory.max memory.current", "memory.limit_in_bytes memory.usage_in_bytes")
    for folder, (limit, used) in _limits("memory", versions, root):
        try:
            lines = (folder / "memory.stat").read_text("utf-8").splitlines()
        except OSError:
            continue
        statistics = {name: int(number) for name, number in map(str.split, lines)}
        files = statistics.get("total_cache", statistics.get("file", 0))
        shared = statistics.get("total_shmem", statistics.get("shmem", 0))
        if limit < _NO_LIMIT:
            found.append((limit, max(0, limit - used + max(0, files - shared))))
    return min(found, key=lambda of_group: of_group[1], default=None)


def cores_of_rank(ranks: int, node: int = 0) -> int:
    """For this process, or one of its children. ranks: on this node. node: a process that has the node's cores.

    mpirun may have bound this process to some of them.
    """
    of_node = min(len(os.sched_getaffinity(node)), container_cores())
    return max(1, min(len(os.sched_getaffinity(0)), of_node // ranks))


def container_cores(root: str = "/") -> int:
    quotas = _limits("cpu", ("cpu.max", "cpu.cfs_quota_us cpu.cfs_period_us"), root)
    found = [max(1, math.floor(quota / period)) for _, (quota, period) in quotas if quota > 0]
    return min(found, default=os.cpu_count() or 1)


def thread_limit(root: str = "/") -> tuple[int, int, str] | None:
    """The limit of which the least is left: how much is left, the limit, and what raises it. None: there is none."""
    raised_by = "docker run --pids-limit, the kubelet's podPidsLimit, systemd's TasksMax"
    found = [
        (max(0, limit - used), limit, f"pids.max of {folder}: {raised_by}")
        for folder, (limit, used) in _limits("pids", ("pids.max pids.current",), root)
    ]
    of_user = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    # The kernel does not limit root.
    if root == "/" and os.getuid() != 0 and of_user != resource.RLIM_INFINITY:
        found.append((max(0, of_user - _threads_of_user()), of_user, "ulimit -u, nproc in limits.conf"))
    return min(found, default=None)


def _threads_of_user() -> int:
    user, used = os.getuid(), 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{process}").st_uid == user:
                used += len(os.listdir(f"/proc/{process}/task"))
        except OSError:
            # It has ended.
            continue
    return used


def is_of_thread_limit(error: BaseException) -> bool:
    """Whether this is how Python says that there may be no more threads or processes."""
    if isinstance(error, OSError) and error.errno == errno.EAGAIN and error.__traceback__ is not None:
        # A socket of the program has this number, too.
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        return str(frame.f_globals.get("__name__")).startswith(("subprocess", "multiprocessing"))
    return "can't start new thread" in str(error)


def more_threads(host: str) -> str:
    """What to do then."""
    found = thread_limit()
    limit = "this node takes no more threads or processes"
    if found is not None:
        limit = "of the limit of {1} threads, {0} are left ({2})".format(*found)
    return (
        f"on {host}, {limit}. Raise the limit, or start fewer ranks, DataLoader workers (num_workers) or "
        "OMP_NUM_THREADS"
    )
