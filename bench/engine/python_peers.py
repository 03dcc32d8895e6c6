"""The peers that end in Python (bench/py/spark_peers.py): a process of its own with a Spark of its own."""

import shutil
import tempfile

from engine import machine, paths, spread
from engine.python_spark import PythonSpark

WAYS = ("parquet", "arrow-stream", "toLocalIterator")


class PythonPeers:
    def __init__(self, lmdb_folder, heap, partitions):
        self.shared = tempfile.mkdtemp(prefix="supply-bench-", dir="/dev/shm")
        try:
            self.spark = PythonSpark("spark_peers.py", paths.jar(), lmdb_folder, self.shared, heap >> 20, partitions)
        except BaseException:
            shutil.rmtree(self.shared, ignore_errors=True)
            raise

    def measure(self, way, source, repetitions):
        verified = self.spark.round(way=way, verify=True)
        wrong = [] if verified["received"] == source else [f"received {verified['received']}, the source has {source}"]
        before = {name: machine.forget_peak_memory(self.spark.about[name]) for name in ("jvm_pid", "pid")}
        rounds = [self.spark.round(way=way, verify=False) for _ in range(repetitions)]
        wrong += [
            f"a round read {r['received']['bytes']} bytes, the source has {source['bytes']}"
            for r in rounds
            if r["received"]["bytes"] != source["bytes"]
        ]
        return {
            "gb_s": spread.of([source["bytes"] / r["nanos"] for r in rounds]),
            "seconds": spread.of([r["nanos"] / 1e9 for r in rounds]),
            "first_seconds": spread.of([r["first_nanos"] / 1e9 for r in rounds]),
            "spark_extra_bytes": machine.peak_memory(self.spark.about["jvm_pid"]) - before["jvm_pid"],
            "rank_peak_bytes": machine.peak_memory(self.spark.about["pid"]),
            "wrong": wrong,
        }

    def close(self):
        self.spark.close()
        shutil.rmtree(self.shared, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
