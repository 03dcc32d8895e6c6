"""Fail points: after a step of proto/PROTOCOL.md the process that reaches it is killed, is stopped, or throws."""

import os

from waiting import wait_until

TASK_STEPS = ("A1", "A2", "A3", "A4", "A5", "A6", "P1", "P2", "P3", "P4")
RESIDENT_FILE_STEPS = ("F1", "F2", "F3")
ENDING_STEPS = ("E1", "E2", "E3")
DELIVERING_STEPS = ("D1", "D2", "D3", "D4")
OPENING_STEPS = ("O1", "O2", "O3", "O4")
RECEIVING_STEPS = ("R1", "R2", "R3", "R4", "C1", "C2")


class FailPoint:
    """The file in SUPPLY_FAIL_POINT (FailPoint.scala, fail_point.h). The process that reaches the step removes it."""

    def __init__(self, folder):
        self.file = folder / "fail-point"
        self.environment = {"SUPPLY_FAIL_POINT": str(self.file)}

    def arm(self, step, action, after=0):
        new = self.file.with_suffix(".new")
        new.write_text(f"{step}:{action}:after={after}\n")
        new.replace(self.file)

    def disarm(self):
        """Removes steps that no process has reached."""
        self.file.unlink(missing_ok=True)

    def taken(self):
        """Waits until a process reaches the step. Returns the process."""
        [taken] = wait_until(self._taken)
        taken.unlink()
        return int(taken.suffix[1:])

    def count_taken(self):
        """The number of processes that have reached a step since the last call."""
        taken = self._taken()
        for file in taken:
            file.unlink()
        return len(taken)

    def _taken(self):
        return list(self.file.parent.glob(f"{self.file.name}.[0-9]*"))


def _state(process):
    """The letter of its state; "Z": it has ended."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def wait_until_stopped(process):
    """A process that ends instead is enough, too."""
    wait_until(lambda: _state(process) in "TZX")


def is_gone(process):
    return not os.path.exists(f"/proc/{process}")
