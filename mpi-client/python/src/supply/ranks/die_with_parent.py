"""Ties this process to its parent: the kernel signals it when the parent ends, whatever ends that.

The parent is the thread that has started this process: the thread must live as long as its process.

`python -m supply.ranks.die_with_parent PARENT COMMAND...` is COMMAND with SIGTERM at the end of the process PARENT.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, signal_number: int = signal.SIGKILL) -> None:
    """parent: its process id. Exits if that has ended before this call."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        sys.exit(f"supply: the parent process {parent} has ended")


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    os.execvp(sys.argv[2], sys.argv[2:])
