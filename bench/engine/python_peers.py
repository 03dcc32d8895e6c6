"""The peers that end in Python (bench/py/spark_peers.py): a process of its own with a Spark of its own."""

import json
import os
import shutil
import subprocess
import tempfile

from engine import machine, paths, process, spread
from engine.failure import BenchError

WAYS = ("parquet", "arrow-stream", "toLocalIterator")


class PythonPeers:
    def __init__(self, lmdb_folder, heap, partitions):
        self.local = tempfile.mkdtemp(prefix="supply-bench-spark-")
        self.shared = tempfile.mkdtemp(prefix="supply-bench-", dir="/dev/shm")
        environment = {
            **os.environ,
            "SPARK_HOME": str(paths.spark_home()),
            "SPARK_CONF_DIR": str(paths.ROOT / "configs" / "spark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
            "PYSPARK_PYTHON": str(paths.VENV_PYTHON),
        }
        command = [paths.VENV_PYTHON, paths.ROOT / "bench" / "py" / "spark_peers.py", lmdb_folder, paths.ROOT / "build" / "python",
                   self.shared, str(heap >> 20), self.local, str(partitions)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            self.about = self._answer()
        except BenchError:
            self.close()
            raise

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"spark_peers.py ended with status {self.process.wait()}: its message stands above")
        return json.loads(line)

    def _round(self, way, verify):
        self.process.stdin.write(f"{way} {'verify' if verify else 'time'}\n")
        self.process.stdin.flush()
        return self._answer()

    def measure(self, way, source, repetitions):
        verified = self._round(way, True)
        wrong = [] if verified["received"] == source else [f"received {verified['received']}, the source has {source}"]
        before = {name: machine.forget_peak_memory(self.about[name]) for name in ("jvm_pid", "pid")}
        rounds = [self._round(way, False) for _ in range(repetitions)]
        wrong += [f"a round read {r['received']['bytes']} bytes, the source has {source['bytes']}" for r in rounds
                  if r["received"]["bytes"] != source["bytes"]]
        return {
            "gb_s": spread.of([source["bytes"] / r["nanos"] for r in rounds]),
            "seconds": spread.of([r["nanos"] / 1e9 for r in rounds]),
            "first_seconds": spread.of([r["first_nanos"] / 1e9 for r in rounds]),
            "spark_extra_bytes": machine.peak_memory(self.about["jvm_pid"]) - before["jvm_pid"],
            "rank_peak_bytes": machine.peak_memory(self.about["pid"]),
            "wrong": wrong,
        }

    def close(self):
        process.end(self.process)
        shutil.rmtree(self.local, ignore_errors=True)
        shutil.rmtree(self.shared, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
