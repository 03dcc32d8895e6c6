"""Kills of what a run of Supplier.run has started, and of executors."""

import contextlib
import threading

_POLL_SECONDS = 0.1


@contextlib.contextmanager
def kills(ground, count, latest, executors):
    """Kills a rank, a process between Spark and the ranks, or an executor, `count` times while the block runs.

    latest: seconds, at most, from one to the next, while there are processes of a run. executors: a function that
    returns the executors' processes.
    """
    over = threading.Event()

    def kill():
        for _ in range(count):
            later = ground.chance.uniform(0, latest)
            while not ground.processes.named("spark_supplier.node.") and not over.wait(_POLL_SECONDS):
                pass
            if over.wait(later):
                return
            found = ground.processes.named("spark_supplier.node.") + sorted(executors())
            if found:
                ground.kill(ground.chance.choice(found))

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
