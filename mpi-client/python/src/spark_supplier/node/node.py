"""The node process: starts the ranks of one node, forwards their output, stops them, and has the files of their calls.

`python -m spark_supplier.node.node` reads a NodeSpec from stdin. The end of stdin means that the starter is gone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import resource
import signal
import subprocess
import sys
import threading
import time

from spark_supplier.errors import RunError
from spark_supplier.launch.processes import living
from spark_supplier.limits import cores_of_rank, is_of_thread_limit, more_threads
from spark_supplier.node.environment import OMP_NUM_THREADS, PYTHON_PATH, NodeSpec, python_path
from spark_supplier.node.hub import Driver, connect
from spark_supplier.node.messages import Begin, End, NodeFailed, NodeStarted, OutputStarted, RankEnded, Stop
from spark_supplier.node.output import CallFiles, Forwarder

# Set by PySpark, which makes spark.executor.pyspark.memory a limit of the address space of workers and their children.
_MEMORY_OF_PYSPARK = "PYSPARK_EXECUTOR_MEMORY_MB"

# How long the ranks together may take to return after SIGTERM, in a call and between calls.
_GRACE_SECONDS = 5
_IDLE_GRACE_SECONDS = 30


class Node:
    """The ranks of this node. output: a second connection to the driver."""

    def __init__(self, spec: NodeSpec, driver: Driver, output: Driver) -> None:
        self._spec = spec
        self._driver = driver
        self._output = output
        self._forwarders: list[Forwarder] = []
        self._stopping = threading.Event()
        self._stop = Stop()
        self._ranks: dict[int, subprocess.Popen[bytes]] = {}
        self._messages: queue.SimpleQueue[Begin | End | None] = queue.SimpleQueue()

    def run(self) -> None:
        """Until all ranks have ended."""
        spec = self._spec
        watchers: list[threading.Thread] = []
        files = CallFiles(self._driver, self._output, len(spec.ranks), spec.host)
        try:
            spec.versions.check(spec.host)
            lift_memory_limit(spec.host)
            self._driver.send(NodeStarted(spec.host))
            while (message := self._messages.get()) is not None:
                files.take(message, self._flush)
                if not watchers:
                    # On this thread: with the one that has started a rank, the kernel ends the rank.
                    watchers = [self._start(local, rank) for local, rank in enumerate(spec.ranks)]
                    threading.Thread(target=self._stop_when_asked, daemon=True).start()
            for watcher in watchers:
                watcher.join()
        finally:
            self._kill()
            spec.files.remove_with_calls()
        for forwarder in self._forwarders:
            forwarder.finish()

    def take(self, message: Begin | End) -> None:
        """A call begins, or ends. Any thread may call it."""
        self._messages.put(message)

    def stop(self, stop: Stop) -> None:
        """Any thread may call it. The first one counts."""
        if not self._stopping.is_set():
            self._stop = stop
            self._stopping.set()
            self._messages.put(None)

    def _flush(self) -> None:
        for forwarder in self._forwarders:
            forwarder.flush()

    def _start(self, local_rank: int, rank: int) -> threading.Thread:
        spec = self._spec
        # All of the node's, as torchrun has it: LOCAL_RANK is the rank's own.
        gpus = {} if spec.gpus is None else {"CUDA_VISIBLE_DEVICES": spec.gpus}
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "spark_supplier.node.rank"],
            env={
                OMP_NUM_THREADS: str(cores_of_rank(len(spec.ranks))), **os.environ, **gpus, **spec.environment,
                PYTHON_PATH: python_path(spec.python_path),
                "RANK": str(rank), "LOCAL_RANK": str(local_rank), "WORLD_SIZE": str(spec.world_size),
                "LOCAL_WORLD_SIZE": str(len(spec.ranks)), "GROUP_RANK": str(spec.node_index),
                "SUPPLY_HOST": spec.host, "SUPPLY_PARENT": str(os.getpid()),
            },
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._ranks[rank] = process
        watcher = threading.Thread(target=self._watch, args=(rank, process), daemon=True)
        watcher.start()
        return watcher

    def _watch(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stderr is not None
        streams = {"stdout": process.stdout, "stderr": process.stderr}
        self._forwarders.append(Forwarder(self._output, rank, streams))
        status = process.wait()
        # What its function has started, and not ended.
        for started in living(process.pid):
            with contextlib.suppress(OSError):
                os.kill(started, signal.SIGTERM)
        self._driver.send(RankEnded(rank, self._spec.host, status, self._stopping.is_set()))
        if all(process.poll() is not None for process in self._ranks.values()):
            self._messages.put(None)

    def _stop_when_asked(self) -> None:
        self._stopping.wait()
        for process in self._ranks.values():
            if self._stop.dump:
                process.send_signal(signal.SIGUSR1)
            process.terminate()
        end = time.monotonic() + (_IDLE_GRACE_SECONDS if self._stop.idle else _GRACE_SECONDS)
        for process in self._ranks.values():
            try:
                process.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()

    def _kill(self) -> None:
        for process in self._ranks.values():
            process.kill()
            process.wait()


def lift_memory_limit(host: str) -> None:
    """Ranks have no share of this memory. Raises RunError if this user may not lift the limit."""
    if _MEMORY_OF_PYSPARK not in os.environ:
        return
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    try:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    except (OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0] >> 20
        raise RunError(
            f"spark.executor.pyspark.memory limits the address space of every process that Spark's Python starts on "
            f"{host}, also of the ranks, to {limit} MiB, and this user may not lift the limit: leave this setting out, "
            "or use launcher=Mpirun()"
        ) from None


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    spec: NodeSpec = pickle.loads(sys.stdin.buffer.read(size))
    output = connect(spec.environment, for_output=True)
    output.send(OutputStarted())
    driver = connect(spec.environment)
    node = Node(spec, driver, output)

    def follow_driver() -> None:
        while isinstance(message := driver.receive(), (Begin, End)):
            node.take(message)
        node.stop(message if isinstance(message, Stop) else Stop())

    def follow_starter() -> None:
        while os.read(0, 4096):
            pass
        node.stop(Stop())

    signal.signal(signal.SIGTERM, lambda *_: node.stop(Stop()))
    try:
        for follow in (follow_driver, follow_starter):
            threading.Thread(target=follow, daemon=True).start()
        node.run()
    except RunError as error:
        driver.send(NodeFailed(str(error)))
    except (OSError, RuntimeError) as error:
        if not is_of_thread_limit(error):
            raise
        driver.send(NodeFailed(f"{error}: {more_threads(spec.host)}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
