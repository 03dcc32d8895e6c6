"""Disk space that programs use while something else runs."""

import contextlib
import os
import threading


class Watch:
    """Samples the disk space of a folder in a `with` block. `most`: the largest sample, in bytes."""

    def __init__(self, folder, period_seconds=0.5):
        self._folder = folder
        self._period_seconds = period_seconds
        self._before = folder_bytes(folder)
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(self._period_seconds):
            self.most = max(self.most, folder_bytes(self._folder) - self._before)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def folder_bytes(folder):
    """Bytes on disk of all files under the folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total
