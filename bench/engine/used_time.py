"""Processor time of a process and all its descendants, also of those whose time no parent inherits."""

import contextlib
import pathlib
import re
import signal
import time

from engine.machine import ended_children_seconds, stat_fields, tree

# New processes are searched for less often than time is read, because the search takes a millisecond.
SEARCH_SECONDS = 0.5


class UsedTime:
    def __init__(self, pid, search_seconds=SEARCH_SECONDS):
        self._pid = pid
        self._search_seconds = search_seconds
        self._search_at = 0.0
        # Descendants whose time a living parent inherits when they end.
        self._pids = []
        # Descendants whose time nobody below `pid` inherits, with their seconds: their parents have ended, or ignore
        # SIGCHLD as PySpark's daemon does.
        self._uninherited = {}

    def seconds(self):
        """The sum until now. It contains what the uninherited used before their parents, and they themselves, ended."""
        now = time.monotonic()
        if now >= self._search_at:
            self._search_at = now + self._search_seconds
            self._search()
        for pid, last in self._uninherited.items():
            self._uninherited[pid] = max(last, used_seconds(pid))
        return sum(map(used_seconds, self._pids)) + sum(self._uninherited.values())

    def _search(self):
        # A parent stands in front of its children, so only the top of a tree becomes an orphan.
        known = dict.fromkeys(tree(self._pid))
        for pid in [*self._uninherited, *self._pids]:
            if pid not in known and (pid in self._uninherited or _parent(pid) not in (None, *known)):
                self._uninherited.setdefault(pid, 0.0)
                known.update(dict.fromkeys(tree(pid)))
        ignoring = {pid for pid in known if _ignores_children(pid)}
        for pid in known:
            if _parent(pid) in ignoring:
                self._uninherited.setdefault(pid, 0.0)
        self._pids = [pid for pid in known if pid not in self._uninherited]


def used_seconds(pid):
    """Processor time of a process and of those of its children that have ended; 0 if it has ended, too."""
    with contextlib.suppress(OSError):
        # Its clock, as clock_getcpuclockid(3) makes it, is precise. /proc counts in steps of 10 ms.
        return time.clock_gettime((~pid << 3) | 2) + ended_children_seconds(pid)
    return 0.0


def _ignores_children(pid):
    """Whether a process ignores SIGCHLD: then the kernel does not add the time of its ended children to its own."""
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"^SigIgn:\s*(\w+)", status, re.MULTILINE)[1], 16) >> (signal.SIGCHLD - 1) & 1 == 1
    return False


def _parent(pid):
    """The parent of a process; None if the process has ended."""
    with contextlib.suppress(OSError):
        return int(stat_fields(pid)[1])
    return None
