"""What a series of faults has come to, counted by comparing multisets with an independent reader."""

import databases
from ranks import multiset


class Tally:
    def __init__(self):
        self.faults = self.elements = self.lost = self.duplicated = self.stuck = 0

    def compare(self, database, ranks, epochs):
        """Counts what ranks that ended well have received: how many elements were lost, and how many came twice."""
        expected = databases.expected_lines(database, epochs)
        received = multiset(ranks)
        lost, duplicated = (expected - received).total(), (received - expected).total()
        self.elements += received.total()
        self.lost += lost
        self.duplicated += duplicated
        return lost, duplicated

    def line(self, name):
        return f"{name}: " + " ".join(f"{count}={value}" for count, value in vars(self).items())


# Of all tests of this process.
TALLY = Tally()
