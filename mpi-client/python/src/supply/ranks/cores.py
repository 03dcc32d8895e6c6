"""How many cores each rank of a node has."""

from __future__ import annotations

import math
import os
import pathlib

OMP_NUM_THREADS = "OMP_NUM_THREADS"

_QUOTA = pathlib.Path("/sys/fs/cgroup/cpu.max")


def cores_of_rank(ranks: int, node: int = 0) -> int:
    """For this process, or one of its children. ranks: on this node. node: a process that has the node's cores.

    mpirun may have bound this process to some of them.
    """
    of_node = min(len(os.sched_getaffinity(node)), _cores_of_container())
    return max(1, min(len(os.sched_getaffinity(0)), of_node // ranks))


def _cores_of_container() -> int:
    try:
        quota, period = map(float, _QUOTA.read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        # There is no limit ("max"), or no cgroup2.
        return os.cpu_count() or 1
    return max(1, math.floor(quota / period))
