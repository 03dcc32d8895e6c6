"""Memory and disk that programs use while something else runs."""

import contextlib
import os
import pathlib
import re
import threading

from engine.machine import tree


class Watch:
    """Samples the memory of a process with all its descendants, and the disk space of a folder, in a `with` block."""

    def __init__(self, pid, folder, period_seconds=0.5):
        self._pid = pid
        self._folder = folder
        self._period_seconds = period_seconds
        self._before = self._most = self._now()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def growth(self):
        """Bytes of memory and of disk, above those at the beginning."""
        return tuple(most - before for most, before in zip(self._most, self._before))

    def _run(self):
        while not self._over.wait(self._period_seconds):
            self._most = tuple(map(max, self._most, self._now()))

    def _now(self):
        return tree_memory(self._pid), folder_bytes(self._folder)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def tree_memory(pid):
    """Proportional bytes (PSS) of a process and its descendants: a shared page counts once."""
    total = 0
    for one in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            rollup = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text(encoding="utf-8")
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
