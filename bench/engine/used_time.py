"""Processor time of a process and all its descendants, with those whose parents have ended."""

import contextlib
import time

from engine.machine import ended_children_seconds, stat_fields, tree

# New processes are searched for less often than time is read, because the search takes a millisecond.
SEARCH_SECONDS = 0.5


class UsedTime:
    def __init__(self, pid, search_seconds=SEARCH_SECONDS):
        self._pid = pid
        self._search_seconds = search_seconds
        self._search_at = 0.0
        self._pids = []
        # Descendants whose parents have ended, with their seconds. Nobody below `pid` inherits the time of these.
        self._orphans = {}

    def seconds(self):
        """The sum until now. It contains what orphans used before their parents, and before they themselves, ended."""
        now = time.monotonic()
        if now >= self._search_at:
            self._search_at = now + self._search_seconds
            self._search()
        for pid, last in self._orphans.items():
            self._orphans[pid] = max(last, used_seconds(pid))
        return sum(map(used_seconds, self._pids)) + sum(self._orphans.values())

    def _search(self):
        seen, self._pids = self._pids, list(tree(self._pid))
        for orphan in self._orphans:
            self._pids += list(tree(orphan))[1:]
        # A parent stands in front of its children, so only the top of a tree becomes an orphan.
        for pid in seen:
            known = {*self._pids, *self._orphans}
            if pid not in known and _parent(pid) not in (None, *known):
                self._orphans[pid] = 0.0
                self._pids += list(tree(pid))[1:]


def used_seconds(pid):
    """Processor time of a process and of those of its children that have ended; 0 if it has ended, too."""
    with contextlib.suppress(OSError):
        # Its clock, as clock_getcpuclockid(3) makes it, is precise. /proc counts in steps of 10 ms.
        return time.clock_gettime((~pid << 3) | 2) + ended_children_seconds(pid)
    return 0.0


def _parent(pid):
    """The parent of a process; None if the process has ended."""
    with contextlib.suppress(OSError):
        return int(stat_fields(pid)[1])
    return None
