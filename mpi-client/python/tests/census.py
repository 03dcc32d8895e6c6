"""What a call holds whenever its ranks start again."""

import logging
import os
import threading

from supplier_session import processes_of_runs

_MIB = 1 << 20


class Census(logging.Handler):
    """Of the logger spark_supplier. left: files and processes of earlier attempts. jvm: java.lang of the driver's."""

    # What the second half of the restarts may have more than the first half. Sizes in MiB.
    SLACK = {"descriptors": 5, "threads": 5, "heap": 16, "memory of Python": 16, "shared memory": 16}

    def __init__(self, jvm, memory):
        super().__init__()
        self._jvm = jvm
        self._memory = memory
        self._driver = [os.getpid(), jvm.ProcessHandle.current().pid()]
        self.left = set()
        self.counts = []

    def emit(self, record):
        if "the ranks are started again" not in record.getMessage():
            return
        self.left |= {*os.listdir(self._memory), *processes_of_runs()}
        self._jvm.System.gc()
        runtime = self._jvm.Runtime.getRuntime()
        threads = [thread.getName() for thread in self._jvm.Thread.getAllStackTraces().keySet()]
        (python, python_shared), (_, java_shared) = map(_memory_of, self._driver)
        self.counts.append(
            {
                "descriptors": sum(len(os.listdir(f"/proc/{process}/fd")) for process in self._driver),
                # Spark's pools for what the garbage collector has found grow to 100 threads.
                "threads": threading.active_count() + sum(not name.startswith("block-manager-") for name in threads),
                "heap": (runtime.totalMemory() - runtime.freeMemory()) / _MIB,
                "memory of Python": python,
                "shared memory": python_shared + java_shared,
            }
        )

    def grown(self):
        middle = len(self.counts) // 2
        first, second = (
            {name: max(count[name] for count in half) for name in self.SLACK}
            for half in (self.counts[:middle], self.counts[middle:])
        )
        return [name for name, slack in self.SLACK.items() if second[name] > first[name] + slack]


def _memory_of(process):
    """MiB in all, and of files and shared memory."""
    with open(f"/proc/{process}/statm") as file:
        _, resident, shared, *_ = file.read().split()
    return [int(pages) * os.sysconf("SC_PAGE_SIZE") / _MIB for pages in (resident, shared)]
