"""Finds processes by a mark in their environment, even if their parents have ended."""

import pathlib
import uuid


class Mark:
    def __init__(self):
        self.name, self.value = "SUPPLY_TEST_RUN", str(uuid.uuid4())

    def __str__(self):
        return f"{self.name}={self.value}"

    def processes(self):
        """Every process of this machine that has the mark, or has inherited it, also in namespaces."""
        found = []
        for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if str(self).encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:  # The process has ended, or is another user's.
                continue
        return found
