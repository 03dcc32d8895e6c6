"""Counts the results of a series of faults, by comparing multisets with an independent reader."""

import databases
from ranks import multiset


class Tally:
    def __init__(self):
        self.faults = self.elements = self.lost = self.duplicated = self.stuck = 0

    def compare(self, database, ranks, epochs):
        """Counts the elements of ranks that succeeded: how many were lost, and how many arrived twice."""
        expected = databases.expected_lines(database, epochs)
        received = multiset(ranks)
        lost, duplicated = (expected - received).total(), (received - expected).total()
        self.elements += received.total()
        self.lost += lost
        self.duplicated += duplicated
        return lost, duplicated

    def line(self, name):
        return f"{name}: " + " ".join(f"{count}={value}" for count, value in vars(self).items())


# For all tests of this process.
TALLY = Tally()
