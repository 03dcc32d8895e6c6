"""The most memory and disk that a program uses meanwhile."""

import contextlib
import os
import pathlib
import re
import threading

PERIOD_SECONDS = 0.5


class Watch:
    """Samples the memory of a process with all its descendants, and the disk space of a folder, in a thread."""

    def __init__(self, pid, folder):
        self._pid = pid
        self._folder = folder
        self._before = (tree_memory(pid), folder_bytes(folder))
        self._most = self._before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def growth(self):
        """Bytes of memory and of disk, above those at the beginning."""
        return tuple(most - before for most, before in zip(self._most, self._before))

    def _sample(self):
        while not self._over.wait(PERIOD_SECONDS):
            now = (tree_memory(self._pid), folder_bytes(self._folder))
            self._most = tuple(map(max, self._most, now))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def tree_memory(pid):
    """Proportional bytes (PSS) of a process and its descendants: a shared page counts once."""
    total, pids = 0, [pid]
    for one in pids:
        try:
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())
            rollup = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has just ended.
        found = re.search(r"^Pss:\s*(\d+) kB", rollup, re.MULTILINE)
        total += int(found[1]) << 10 if found else 0
    return total


def folder_bytes(folder):
    """Bytes on disk of all files under the folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total
