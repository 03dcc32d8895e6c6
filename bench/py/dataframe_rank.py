"""A rank that takes PyTorch batches from a DataFrame in Spark's memory.

It does one round for each line of JSON on stdin and answers each with one. It is Spark's driver program, too, for every
way alike, because toLocalIterator() must run there.
"""

import json
import sys
import time

import pyarrow
import session
import torch
from dataframe_ways import HELD, WAYS
from py4j.protocol import Py4JJavaError


def dataframe(spark, rows, partitions):
    """Persists and computes the DataFrame: every way starts from the same partitions."""
    pixels = "transform(sequence(0, 63), i -> cast((id * i) % 17 AS float)) AS pixels"
    made = spark.range(0, rows, 1, partitions).selectExpr(pixels, "int(id % 10) AS label").persist()
    made.count()
    return made


def tally(frame):
    """Spark's own tally. Sums of small integers do not depend on their order."""
    sums = frame.selectExpr("count(*)", "sum(aggregate(pixels, 0d, (sum, pixel) -> sum + pixel))", "sum(label)").first()
    return {"samples": sums[0], "pixels": int(sums[1]), "label": sums[2]}


class Epoch:
    """Reads every value of the batches."""

    def __init__(self):
        self.first = None
        self.end = None
        self.samples = 0
        self.sums = {"pixels": [], "label": []}

    def take(self, batches):
        pixels, label = self.sums["pixels"], self.sums["label"]
        for batch in batches:
            if self.first is None:
                self.first = time.monotonic_ns()
            self.samples += len(batch["label"])
            pixels.append(batch["pixels"].sum())
            label.append(batch["label"].sum())
            # A batch must not be held while the next one is awaited.
            del batch
        self.end = time.monotonic_ns()

    def received(self):
        return {
            "samples": self.samples,
            **{name: int(torch.stack(sums).sum(dtype=torch.float64)) for name, sums in self.sums.items()},
        }


def measure(frame, shared_folder, way, epochs, **options):
    taken = []
    start = time.monotonic_ns()
    for batches in WAYS[way](frame, epochs, shared_folder=shared_folder, **options):
        taken.append(Epoch())
        taken[-1].take(batches)
    return {
        "first_nanos": taken[0].first - start,
        "epoch_nanos": [epoch.end - start for epoch in taken],
        "received": [epoch.received() for epoch in taken],
    }


def main():
    local_dir, jar, shared_folder, heap_mib, cores, rows, partitions = sys.argv[1:]
    torch.set_num_threads(1)
    spark = session.start(local_dir, jar, heap_mib, cores)
    try:
        frame = dataframe(spark, int(rows), int(partitions))
        HELD.extend(frame.toArrow().to_batches())
        print(json.dumps({"tally": tally(frame)}), flush=True)
        for line in sys.stdin:
            try:
                answer = measure(frame, shared_folder, **json.loads(line))
            except (Py4JJavaError, pyarrow.ArrowInvalid, OSError) as error:
                # Workers that read ahead (Spark 4.3) end too early, or never connect: the page says so.
                answer = {"error": str(error).partition("\n")[0]}
                spark.sparkContext.cancelAllJobs()
            print(json.dumps(answer), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
