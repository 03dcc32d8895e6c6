"""The node process, as the Spark task that starts it sees it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from supply.errors import RunError
from supply.ranks import python_path
from supply.ranks.cores import OMP_NUM_THREADS

# How long a node process may take to stop its ranks and to clean up.
_STOP_SECONDS = 20


def run_node(host: str, threads: str, spec: bytes) -> None:
    """Runs the node process until its ranks have ended. Its stdin ends with this process, whatever kills it.

    threads: OMP_NUM_THREADS of the executor, or "". That of this process is PySpark's.
    """
    # The files of addPyFile are in this path only.
    environment = {**os.environ, OMP_NUM_THREADS: threads, python_path.VARIABLE: python_path.python_path()}
    if not threads:
        del environment[OMP_NUM_THREADS]
    command = [sys.executable, "-m", "supply.ranks.node"]
    node = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, start_new_session=True)
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
            if node.returncode != 0:
                # A node process that was killed has left them.
                pickle.loads(spec).files.remove()
    if status != 0:
        raise RunError(f"the node process of {host} ended with status {status}")
