"""The Spark task that starts the ranks of one node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def task(specs: dict[str, bytes]) -> Callable[[int, Iterable[bytes]], Iterator[Any]]:
    """The function of the barrier job. specs: a pickled NodeSpec for each host.

    It is nested so that it travels by value: an executor without this package can then say so. It needs nothing of
    supply.spark, whose modules take long to import.
    """

    def start(_: int, hosts: Iterable[bytes]) -> Iterator[Any]:
        import importlib

        host, threads = next(iter(hosts)).decode().split("\n")
        try:
            node_process = importlib.import_module("supply.ranks.node_process")
        except ImportError as error:
            raise RuntimeError(
                f"executor on {host}: {sys.executable} cannot import supply ({error}): install the package "
                "supply there, or set PYSPARK_PYTHON to a Python that has it"
            ) from None
        node_process.run_node(host, threads, specs[host])
        return iter(())

    return start
