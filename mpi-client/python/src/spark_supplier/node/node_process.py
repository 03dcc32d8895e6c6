"""The node process, as the Spark task that starts it sees it, and that task."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spark_supplier.errors import RunError
from spark_supplier.node.environment import OMP_NUM_THREADS, PYTHON_PATH, python_path


def starter_task(specs: dict[str, bytes], beat: float | None) -> Callable[[int, Iterable[bytes]], Iterator[Any]]:
    """The function of the job that starts ranks. specs: a pickled NodeSpec for each host. beat: as of run_node().

    It is nested so that it travels by value: an executor without this package can then say so. It needs nothing of
    spark_supplier, whose modules take long to import.
    """

    def start(_: int, hosts: Iterable[bytes]) -> Iterator[Any]:
        import importlib

        host, threads = next(iter(hosts)).decode().split("\n")
        try:
            node_process = importlib.import_module("spark_supplier.node.node_process")
        except ImportError as error:
            raise RuntimeError(
                f"executor on {host}: {sys.executable} cannot import spark_supplier ({error}): install the package "
                "supply there, or set PYSPARK_PYTHON to a Python that has it"
            ) from None
        yield from node_process.run_node(host, threads, specs[host], beat)

    return start


def arrow_starter_task(start: Callable[[int, Iterable[bytes]], Iterator[bytes]]) -> Callable[[Any], Iterator[Any]]:
    """The same for mapInArrow: a batch with a column of bytes becomes batches of one."""

    def start_batches(batches: Any) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for beat in start(0, batch.column(0).to_pylist()):
                yield pyarrow.RecordBatch.from_arrays([pyarrow.array([beat], pyarrow.binary())], ["beat"])

    return start_batches


# How long a node process may take to stop its ranks and to clean up.
_STOP_SECONDS = 20


# A batch of its own for PySpark, and more than it buffers.
_BEAT = bytes(1 << 17)


def run_node(host: str, threads: str, spec: bytes, beat: float | None) -> Iterator[bytes]:
    """Runs the node process until its ranks have ended. Its stdin ends with this process, whatever kills it.

    threads: OMP_NUM_THREADS that the user has set for executors, as far as that is known, or "". That of this process
    is PySpark's. beat: seconds from one element to the next: Spark may end a worker from which nothing comes.
    """
    # The files of addPyFile are in this path only.
    environment = {**os.environ, OMP_NUM_THREADS: threads, PYTHON_PATH: python_path()}
    if not threads:
        del environment[OMP_NUM_THREADS]
    command = [sys.executable, "-m", "spark_supplier.node.node"]
    node = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, start_new_session=True)
    assert node.stdin is not None
    try:
        node.stdin.write(len(spec).to_bytes(8, "big") + spec)
        node.stdin.flush()
        while True:
            try:
                status = node.wait(beat)
                break
            except subprocess.TimeoutExpired:
                yield _BEAT
    finally:
        try:
            node.stdin.close()
            node.wait(_STOP_SECONDS)
        finally:
            if node.returncode != 0:
                # A node process that was killed has left them.
                pickle.loads(spec).files.remove_with_calls()
    if status != 0:
        raise RunError(f"the node process of {host} ended with status {status}")
