"""The Spark task that starts the ranks of one node."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# How long a node process may take to stop its ranks and to clean up.
_STOP_SECONDS = 20


def task(specs: dict[str, bytes]) -> Callable[[int, Iterable[bytes]], Iterator[Any]]:
    """The function of the barrier job. specs: a pickled NodeSpec for each host.

    It is nested so that it travels by value: an executor without this package can then say so.
    """

    def start(_: int, hosts: Iterable[bytes]) -> Iterator[Any]:
        import importlib

        host = next(iter(hosts)).decode()
        try:
            starter = importlib.import_module("supply.spark.starter")
        except ImportError as error:
            raise RuntimeError(
                f"executor on {host}: {sys.executable} cannot import supply.spark ({error}): install the package "
                "supply there, or set PYSPARK_PYTHON to a Python that has it"
            ) from None
        starter.run_node(host, specs[host])
        return iter(())

    return start


def run_node(host: str, spec: bytes) -> None:
    """Runs the node process until its ranks have ended. Its stdin ends with this process, whatever kills it."""
    node = subprocess.Popen([sys.executable, "-m", "supply.ranks.node"], stdin=subprocess.PIPE, start_new_session=True)
    assert node.stdin is not None
    try:
        node.stdin.write(len(spec).to_bytes(8, "big") + spec)
        node.stdin.flush()
        status = node.wait()
    finally:
        try:
            node.stdin.close()
            node.wait(_STOP_SECONDS)
        finally:
            # A node process that was killed has left them.
            pickle.loads(spec).files.remove()
    if status != 0:
        raise RuntimeError(f"the node process of {host} ended with status {status}")
