"""Which Python Spark's workers run in local mode."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def python_of_driver(context: Any) -> Iterator[None]:
    """In local mode, what is made here uses the driver's Python unless another one is configured, and not `python3`."""
    before = context.pythonExec
    is_configured = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if context._jsc.sc().isLocal() and not is_configured:
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before
