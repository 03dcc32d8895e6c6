"""What a process has really read from the disk, page faults of mapped files included."""

import bisect
import contextlib
import pathlib
import time

from engine.machine import first_match
from engine.watch import Sampler

PERIOD_SECONDS = 0.02


def read_bytes(pid):
    """Bytes that a process has made the disk read. Only its own user, and root, may ask."""
    return int(first_match(r"^read_bytes: (\d+)$", pathlib.Path(f"/proc/{pid}/io").read_text(encoding="utf-8")))


class DiskReads:
    """Samples read_bytes() of one process after the other, to tell later what was read in a span of time."""

    def __init__(self):
        self._times = []
        self._bytes = []
        # Of the processes before.
        self._past = 0

    @contextlib.contextmanager
    def watch(self, pid):
        def sample():
            # A process that has ended reads no more.
            with contextlib.suppress(OSError):
                self._bytes.append(self._past + read_bytes(pid))
                self._times.append(time.monotonic_ns())

        sample()
        with Sampler(sample, PERIOD_SECONDS):
            yield
        sample()
        self._past = self._bytes[-1]

    def between(self, start, end):
        """
        Bytes from the last sample before `start` to the first one after `end`, times of the monotonic clock in
        nanoseconds. They are those of the span if the process pauses before and after it.
        """
        first = max(0, bisect.bisect_right(self._times, start) - 1)
        last = min(len(self._times) - 1, bisect.bisect_left(self._times, end))
        return self._bytes[last] - self._bytes[first]
