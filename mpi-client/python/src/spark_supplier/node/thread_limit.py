"""How many threads and processes a node may still have, and what to do when there are no more."""

from __future__ import annotations

import errno
import os
import resource
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from spark_supplier.errors import RunError
from spark_supplier.shared_memory import control_groups

# Of a rank with its gloo, those of the node process for it, and those of the node process itself. A rank has as many
# more as OMP_NUM_THREADS says.
_OF_RANK, _OF_NODE = 12, 4


@dataclass(frozen=True)
class ThreadLimit:
    """setting: what raises it."""

    limit: int
    used: int
    setting: str

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    def __str__(self) -> str:
        return f"of the limit of {self.limit} threads, {self.left} are left ({self.setting})"


def thread_limit(root: str = "/") -> ThreadLimit | None:
    """The limit of which the least is left: of the control groups, and of the user. None: there is none.

    root: of the folders proc and sys. Tests hand in another one, which leaves the user out.
    """
    found = [*_of_groups(root), *(_of_user() if root == "/" else ())]
    return min(found, key=lambda limit: limit.left, default=None)


def require_threads(ranks: int, threads: int, host: str, root: str = "/") -> None:
    """Raises RunError if ranks would fail on this node. threads: OMP_NUM_THREADS of each."""
    needed = _OF_NODE + ranks * (_OF_RANK + threads)
    found = thread_limit(root)
    if found is not None and found.left < needed:
        raise RunError(
            f"{ranks} ranks need {needed} threads on {host}, but {found}: raise the limit, start fewer ranks on a "
            "node, or set OMP_NUM_THREADS smaller"
        )


def is_of_limit(error: BaseException) -> bool:
    """Whether this is how Python says that there may be no more threads or processes."""
    if isinstance(error, OSError) and error.errno == errno.EAGAIN and error.__traceback__ is not None:
        # A socket of the program has this number, too.
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        return str(frame.f_globals.get("__name__")).startswith(("subprocess", "multiprocessing"))
    return "can't start new thread" in str(error)


def fix(host: str) -> str:
    """What to do then."""
    found = thread_limit()
    limit = f"{found}. Raise" if found else "this node takes no more threads or processes. Raise"
    return f"on {host}, {limit} the limit, or start fewer ranks, DataLoader workers (num_workers) or OMP_NUM_THREADS"


def _of_groups(root: str) -> Iterator[ThreadLimit]:
    setting = "pids.max of {}: docker run --pids-limit, the kubelet's podPidsLimit, systemd's TasksMax"
    for folder in control_groups("pids", root):
        try:
            limit, used = (int((folder / name).read_text(encoding="utf-8")) for name in ("pids.max", "pids.current"))
        except (OSError, ValueError):
            # "max", or no such group here.
            continue
        yield ThreadLimit(limit, used, setting.format(folder))


def _of_user() -> Iterator[ThreadLimit]:
    """The kernel does not limit root."""
    user, limit = os.getuid(), resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if user == 0 or limit == resource.RLIM_INFINITY:
        return
    used = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{process}").st_uid == user:
                used += len(os.listdir(f"/proc/{process}/task"))
        except OSError:
            # It has ended.
            continue
    yield ThreadLimit(limit, used, "ulimit -u, nproc in limits.conf")
