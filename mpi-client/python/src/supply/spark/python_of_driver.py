"""Which Python Spark's workers run in local mode."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

# Two threads may fit at once, as in a CrossValidator.
_changing = threading.Lock()


def use_python_of_driver(context: Any) -> None:
    """In local mode, the workers run the driver's Python unless another one is configured, and not `python3`."""
    is_configured = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if context._jsc.sc().isLocal() and not is_configured:
        context.pythonExec = sys.executable


@contextlib.contextmanager
def python_of_driver(context: Any) -> Iterator[None]:
    """As use_python_of_driver(), for what is made here."""
    with _changing:
        before = context.pythonExec
        use_python_of_driver(context)
        try:
            yield
        finally:
            context.pythonExec = before
