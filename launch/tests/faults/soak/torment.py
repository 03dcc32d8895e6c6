"""Causes faults at random until a run is over."""

import time

import headers
from soak.ground import STUCK

# Seconds between two faults, and seconds that a process is stopped.
PAUSE = (0.05, 0.3)
STOP = (0.05, 0.6)
# Seconds with faults, from the first block. A run that is not over then ends in peace.
LONGEST = 25


def go_through(ground, is_over, mapped_files, faults, sample=lambda: None):
    """
    Causes faults for some time, and waits until the run is over. faults: functions of the number of a pair, with their
    weights. One that returns true has ended the run, and none follows. Returns the number of that pair, or None.

    Raises TimeoutError if the run makes no progress: no pair has another block.
    """
    moved, before, next_fault, last_fault, ended = time.monotonic(), None, 0, None, None
    functions, weights = zip(*faults)
    while not is_over():
        time.sleep(0.05)
        sample()
        published = [headers.read(file, "published") for file in mapped_files]
        if published != before:
            moved, before = time.monotonic(), published
        if time.monotonic() - moved > STUCK:
            raise TimeoutError(f"no block for {STUCK} s")
        if last_fault is None and any(published):
            last_fault = time.monotonic() + LONGEST
        if last_fault is not None and next_fault < time.monotonic() < last_fault and ended is None:
            number = ground.chance.randrange(len(mapped_files))
            if ground.chance.choices(functions, weights)[0](number):
                ended = number
            next_fault = time.monotonic() + ground.chance.uniform(*PAUSE)
    return ended


class PairFaults:
    """Faults of the processes at both ends of pairs: executors of the cluster, and ranks."""

    def __init__(self, ground, mapped_files):
        self._ground, self._mapped_files = ground, mapped_files
        self.weighted = [(self.kill_task, 8), (self.stop_task, 5), (self.stop_rank, 5), (self.kill_rank, 1)]

    def task(self, number):
        """The executor that is attached to the pair, or None if there is none or it has died."""
        process = headers.read(self._mapped_files[number], "task_pid")
        return process if process in self._ground.cluster.executors() else None

    def rank(self, number):
        """The process that has opened the pair; 0 if none has."""
        return headers.read(self._mapped_files[number], "rank_pid")

    def kill_task(self, number):
        if process := self.task(number):
            self._ground.kill(process)

    def stop_task(self, number):
        if process := self.task(number):
            self._stop(process)

    def stop_rank(self, number):
        if process := self.rank(number):
            self._stop(process)

    def kill_rank(self, number):
        # Before the rank has a task, or after its task has died, the run waits for another rank.
        return bool(self.task(number)) and self._ground.kill_rank(self.rank(number))

    def _stop(self, process):
        with self._ground.suspended(process):
            time.sleep(self._ground.chance.uniform(*STOP))
