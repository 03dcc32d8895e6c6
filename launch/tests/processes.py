"""Processes that are found by a mark in their environment, whatever became of their parents."""

import pathlib
import uuid


class Mark:
    def __init__(self):
        self.name, self.value = "SUPPLY_TEST_RUN", str(uuid.uuid4())

    def __str__(self):
        return f"{self.name}={self.value}"

    def processes(self):
        """Every process of this machine, those in namespaces too, that has the mark, or has inherited it."""
        found = []
        for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if str(self).encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:  # It has ended meanwhile, or is another user's.
                continue
        return found
