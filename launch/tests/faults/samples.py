"""Samples the resources of processes over a long run: they must not grow."""

import collections
import os


def resident_bytes(process):
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def folder_bytes(folder):
    return sum(entry.stat().st_blocks * 512 for entry in os.scandir(folder) if entry.is_file())


class Samples:
    # This growth is allowed: a heap that fills for the first time, and the caches of a process.
    FACTOR = 1.25
    SLACK = {"resident_bytes": 64 << 20, "descriptors": 16, "file_bytes": 0}

    def __init__(self):
        self._series = collections.defaultdict(list)

    def take(self, who, process):
        """Takes one sample of a process, or none if it has just ended."""
        try:
            sample = resident_bytes(process), descriptors(process)
        except (FileNotFoundError, ProcessLookupError):
            return
        if not sample[0]:
            return
        self._series[who, "resident_bytes"].append(sample[0])
        self._series[who, "descriptors"].append(sample[1])

    def take_folder(self, who, folder):
        self._series[who, "file_bytes"].append(folder_bytes(folder))

    def lines(self):
        """A line a series for people: the maximum of the first half and of the second half."""
        return [f"{who} {what}: {first} then {second}" for (who, what), first, second in self._halves()]

    def growing(self):
        """The series whose second half is larger than the first."""
        return [
            f"{who} {what}"
            for (who, what), first, second in self._halves()
            if second > first * self.FACTOR + self.SLACK[what]
        ]

    def _halves(self):
        for name, values in sorted(self._series.items()):
            middle = len(values) // 2
            if middle:
                yield name, max(values[:middle]), max(values[middle:])
