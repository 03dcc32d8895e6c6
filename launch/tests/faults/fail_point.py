"""Fail points: a step of proto/PROTOCOL.md behind which the process that passes it is killed, stopped, or throws."""

import os

from waiting import wait_until

TASK_STEPS = ("A1", "A2", "A3", "A4", "A5", "A6", "P1", "P2", "P3", "P4")
ENDING_STEPS = ("E1", "E2", "E3")
DELIVERING_STEPS = ("D1", "D2", "D3", "D4")
OPENING_STEPS = ("O1", "O2", "O3", "O4")
RECEIVING_STEPS = ("R1", "R2", "R3", "R4", "C1", "C2")


class FailPoint:
    """The file that SUPPLY_FAIL_POINT names (FailPoint.scala, fail_point.h): whoever comes to the step takes it away."""

    def __init__(self, folder):
        self.file = folder / "fail-point"
        self.environment = {"SUPPLY_FAIL_POINT": str(self.file)}

    def arm(self, step, action, after=0):
        new = self.file.with_suffix(".new")
        new.write_text(f"{step}:{action}:after={after}\n")
        new.replace(self.file)

    def disarm(self):
        """Forgets what has not been reached."""
        self.file.unlink(missing_ok=True)

    def taken(self):
        """Waits until somebody has come to the step: that process."""
        [taken] = wait_until(self._taken)
        taken.unlink()
        return int(taken.suffix[1:])

    def count_taken(self):
        """How many have come to a step since the last time."""
        taken = self._taken()
        for file in taken:
            file.unlink()
        return len(taken)

    def _taken(self):
        return list(self.file.parent.glob(f"{self.file.name}.[0-9]*"))


def is_stopped(process):
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def wait_until_stopped(process):
    wait_until(lambda: is_stopped(process))


def is_gone(process):
    return not os.path.exists(f"/proc/{process}")
