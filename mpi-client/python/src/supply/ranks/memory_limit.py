"""spark.executor.pyspark.memory, which PySpark makes a limit of the address space of workers and their children."""

from __future__ import annotations

import os
import resource

from supply.errors import RunError

_OF_PYSPARK = "PYSPARK_EXECUTOR_MEMORY_MB"


def lift_memory_limit(host: str) -> None:
    """Ranks have no share of this memory. Raises RunError if this user may not lift the limit."""
    if _OF_PYSPARK not in os.environ:
        return
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    try:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    except (OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0] >> 20
        raise RunError(
            f"spark.executor.pyspark.memory limits the address space of every process that Spark's Python starts on "
            f"{host}, also of the ranks, to {limit} MiB, and this user may not lift the limit: leave this setting out, "
            "or use launcher='mpirun'"
        ) from None
