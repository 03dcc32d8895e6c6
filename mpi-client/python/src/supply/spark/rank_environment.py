"""What ranks get of the driver's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from supply.ranks.cores import OMP_NUM_THREADS

# spark-submit sets it, and OMP_NUM_THREADS to the driver's cores, in the Python that it starts.
_OF_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"


def rank_environment(context: Any, given: Mapping[str, str]) -> dict[str, str]:
    """Environment variables for the ranks. given: those that the user has given for them."""
    # The lines that ranks print are UTF-8, whatever the locale of their node.
    environment = {"PYTHONUTF8": "1"}
    threads = context.getConf().get(f"spark.executorEnv.{OMP_NUM_THREADS}") or _of_driver(context)
    if threads:
        environment[OMP_NUM_THREADS] = threads
    return {**environment, **given}


def _of_driver(context: Any) -> str | None:
    """OMP_NUM_THREADS of the user in the driver's environment, if ranks have that."""
    if not context._jsc.sc().isLocal():
        return None
    if _OF_SPARK_SUBMIT in os.environ:
        threads: str | None = context._jvm.System.getenv(OMP_NUM_THREADS)
        return threads
    return os.environ.get(OMP_NUM_THREADS)
