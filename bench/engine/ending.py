"""How a benchmark ends that is asked to end: what it has started ends with it."""

import signal
import sys


def on_sigterm():
    """Lets SIGTERM unwind the program as an error does."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
