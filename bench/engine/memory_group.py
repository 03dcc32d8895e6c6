"""A group of processes that get no more than so much memory, the kernel's cache of what they read included."""

import contextlib
import os
import pathlib
import sys
import tempfile

from engine.machine import BenchError

_ROOTS = {
    # cgroup v2, then v1.
    pathlib.Path("/sys/fs/cgroup"): "memory.max",
    pathlib.Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes",
}


def _root():
    """The folder in which groups are made, and the name of a group's limit. None: there is none that we may use."""
    for root, limit in _ROOTS.items():
        probe = root / f"supply-bench-probe-{os.getpid()}"
        with contextlib.suppress(OSError):
            probe.mkdir()
            usable = os.access(probe / limit, os.W_OK)
            probe.rmdir()
            if usable:
                return root, limit
    return None


def why_not():
    """Why this machine has no such groups; empty if it has."""
    return "" if _root() else "this user may not limit the memory of processes (cgroups, as root)"


@contextlib.contextmanager
def limited(pids, bytes_):
    """Limits these processes together for the time of the context. They must have ended, or leave, at its end."""
    found = _root()
    if found is None:
        raise BenchError(why_not())
    root, limit = found
    group = pathlib.Path(tempfile.mkdtemp(prefix="supply-bench-", dir=root))
    try:
        (group / limit).write_text(str(bytes_), encoding="utf-8")
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        yield
    finally:
        _remove(group, root)


def _remove(group, root):
    """Only warns if the group cannot be removed, so that an error of the context is not hidden."""
    try:
        for pid in (group / "cgroup.procs").read_text(encoding="utf-8").split():
            with contextlib.suppress(OSError):
                (root / "cgroup.procs").write_text(pid, encoding="utf-8")
        group.rmdir()
    except OSError as error:
        print(f"bench: warning: {group} is left: {error}. Remove it with rmdir.", file=sys.stderr)
