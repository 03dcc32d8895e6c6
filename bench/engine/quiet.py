"""Rounds that others on this machine disturbed: how much of the processors they took, and measuring them again."""

import bisect
import os
import time

from engine.used_time import UsedTime
from engine.watch import Sampler

# Of all processors. A round in which others took more is marked, and measured again.
LIMIT = 0.05
# Of the rounds of a figure. With more marked ones the figure is not quiet.
MARKED_LIMIT = 0.25
# Processor time is counted in steps of 10 ms, so a shorter round is judged by this time around it.
SHORTEST_NANOS = 300_000_000
PERIOD_SECONDS = 0.05


class OtherTime(Sampler):
    """
    Samples the processor seconds that neither this process nor its descendants used, while its `with` block runs.

    Time that the host of a virtual machine has stolen counts, and so does that of the kernel's own threads.
    """

    def __init__(self, period_seconds=PERIOD_SECONDS):
        super().__init__(self._poll, period_seconds)
        self._used = UsedTime(os.getpid())
        self._times = []
        self._others = []

    def __enter__(self):
        self._poll()
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._poll()

    def share(self, start, end):
        """The share of all processors that others had between two times of the monotonic clock, in nanoseconds."""
        missing = max(0, SHORTEST_NANOS - (end - start)) // 2
        start = max(start - missing, self._times[0])
        end = min(end + missing, self._times[-1])
        if end <= start:
            return 0.0
        others = self._at(end) - self._at(start)
        return max(0.0, others * 1e9 / (end - start) / os.cpu_count())

    def _at(self, nanos):
        """The others' seconds until then, between the two samples around it."""
        after = min(max(1, bisect.bisect_left(self._times, nanos)), len(self._times) - 1)
        (t0, t1), (a, b) = (values[after - 1 : after + 1] for values in (self._times, self._others))
        return a + (b - a) * (nanos - t0) / (t1 - t0)

    def _poll(self):
        self._others.append(_busy_seconds() - self._used.seconds())
        self._times.append(time.monotonic_ns())


def _busy_seconds():
    """Seconds in which the processors were not idle, since some time. Idle time is precise, others are sampled."""
    with open("/proc/stat", encoding="utf-8") as file:
        idle, iowait = map(int, file.readline().split()[4:6])
    return time.monotonic() * os.cpu_count() - (idle + iowait) / os.sysconf("SC_CLK_TCK")


def stolen_seconds():
    """Processor time that the host has given to others since the machine started."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Rounds(list):
    """
    The rounds that count, and `marked`: the number of those that others disturbed.

    `others`: the others' share of each of them. `measured`: all rounds for the JSON, also those that do not count.
    """

    def __init__(self, measured, wanted):
        """measured: pairs of the others' share and the round, in order. Prefers rounds that are not marked."""
        quietest = sorted(range(len(measured)), key=lambda i: max(LIMIT, measured[i][0]))[:wanted]
        super().__init__(measured[i][1] for i in sorted(quietest))
        self.others = [measured[i][0] for i in sorted(quietest)]
        self.measured = [
            {"others": share, "counts": i in quietest, "measured": round_} for i, (share, round_) in enumerate(measured)
        ]

    @property
    def marked(self):
        return sum(share > LIMIT for share in self.others)


def rounds(warm_up, wanted, measure, again=True):
    """
    Calls `measure(number)` for each round and returns those that count, without the first `warm_up`.

    again: a marked round is measured again, but there are at most twice as many rounds as wanted.
    """
    measured = []
    with OtherTime() as others:
        for number in range(warm_up + (2 if again else 1) * wanted):
            start = time.monotonic_ns()
            round_ = measure(number)
            if number >= warm_up:
                measured.append((start, time.monotonic_ns(), round_))
            if sum(others.share(start, end) <= LIMIT for start, end, _ in measured) >= wanted:
                break
    return Rounds([(others.share(start, end), round_) for start, end, round_ in measured], wanted)
