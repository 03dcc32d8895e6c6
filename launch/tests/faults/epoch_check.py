"""Compares the ranks' output with an independent reader, epoch by epoch while they run: a run may have any length."""

import collections
import threading

import databases


class EpochCheck:
    def __init__(self, database, ranks, tally):
        self._expected = collections.Counter(
            {line.split("\t", 1)[1]: count for line, count in databases.expected_lines(database).items()}
        )
        self._ranks = ranks
        self._tally = tally
        self._lock = threading.Lock()
        self._epochs = {}
        self._complete = 0

    def read(self, stream):
        """Reads everything that one rank prints."""
        epoch, elements = 0, collections.Counter()
        for line in stream:
            # A rank that is killed may have printed a part of its last line.
            if not line.endswith(b"\n"):
                break
            number, element = line.decode().rstrip("\n").split("\t", 1)
            while int(number) > epoch:
                self._has_ended(epoch, elements)
                epoch, elements = epoch + 1, collections.Counter()
            elements[element] += 1
        # Complete after the end of data, or cut off by a fault: `finish` decides.
        self._has_ended(epoch, elements, at_end=True)

    def _has_ended(self, epoch, elements, at_end=False):
        with self._lock:
            seen, ranks, cut_off = self._epochs.pop(epoch, (collections.Counter(), 0, False))
            seen, ranks, cut_off = seen + elements, ranks + 1, cut_off or at_end
            if ranks == self._ranks and not cut_off:
                self._compare(seen, epoch)
            else:
                self._epochs[epoch] = (seen, ranks, cut_off)

    def _compare(self, seen, epoch):
        self._tally.elements += seen.total()
        self._tally.lost += (self._expected - seen).total()
        self._tally.duplicated += (seen - self._expected).total()
        self._complete += 1

    def finish(self, epochs):
        """
        Compares the last epochs after all ranks have ended. epochs: the expected number, or None if the run was cut
        off: then elements of the last epochs may be missing, but there may be no others.
        """
        for epoch, (seen, _, _) in sorted(self._epochs.items()):
            if epochs is not None:
                self._compare(seen, epoch)
            else:
                self._tally.elements += seen.total()
                self._tally.duplicated += (seen - self._expected).total()
        if epochs is not None and self._complete < epochs:
            self._tally.lost += (epochs - self._complete) * self._expected.total()
