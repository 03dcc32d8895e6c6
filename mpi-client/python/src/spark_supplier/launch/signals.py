"""Signals: their names, and the one with which the kernel ends a process whose parent has ended.

`python -m spark_supplier.launch.signals PARENT COMMAND...` is COMMAND with SIGTERM at the end of the process PARENT.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def name(number: int) -> str:
    """Most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_with_parent(parent: int, number: int) -> None:
    """From now on the kernel sends that signal when the parent ends, however it ends. Exits if it has already.

    parent: its process id. What counts is the thread that has started this process: it must live as long.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        sys.exit(f"supply: the parent process {parent} has ended")


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]), signal.SIGTERM)
    os.execvp(sys.argv[2], sys.argv[2:])
