"""Commands, and processes that are found by a mark in their environment, even if their parents have ended."""

import os
import pathlib
import subprocess
import uuid


def ran(*words, cwd=None, timeout=180, **environment):
    """The command, which has ended."""
    return subprocess.run(
        list(map(str, words)), cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


class Mark:
    def __init__(self):
        self.name, self.value = "SUPPLY_TEST_RUN", str(uuid.uuid4())

    def __str__(self):
        return f"{self.name}={self.value}"

    def is_on(self, process):
        """Whether a process has the mark, or has inherited it."""
        try:
            return str(self).encode() in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:  # The process has ended, or is another user's.
            return False

    def processes(self):
        """Every process of this machine that has the mark, also in namespaces."""
        return [process for process in map(int, filter(str.isdecimal, os.listdir("/proc"))) if self.is_on(process)]
