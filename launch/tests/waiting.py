"""Waits for something that another process does."""

import time

from ranks import END_OF_PATIENCE


def wait_until(probe, patience=END_OF_PATIENCE):
    """Calls the probe until its result is true. Returns the result."""
    end = time.monotonic() + patience
    while not (found := probe()):
        if time.monotonic() > end:
            raise TimeoutError(f"it did not happen within {patience} s")
        time.sleep(0.05)
    return found
