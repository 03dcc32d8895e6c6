"""What processes have in memory, looked at from time to time beside a run."""

import threading

from engine import machine


class MemoryWatch:
    """`pids`: by the name that is asked for later."""

    def __init__(self, pids, period_seconds=2):
        self.pids = pids
        self.period_seconds = period_seconds
        self.seen = {name: [] for name in pids}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self._over.is_set():
            for name, pid in self.pids.items():
                self.seen[name].append(machine.resident_memory(pid))
            self._over.wait(self.period_seconds)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()
