"""A driver program for bench/offload. It does one round of a job, or makes a matrix, for each line of JSON on stdin."""

import json
import os
import sys
import time
import traceback

import offload_data
import session
from engine import quiet
from engine.machine import processor_seconds
from offload_jobs import JOBS
from offload_mllib import MLlib, native_blas
from offload_ranks import OnRanks
from spark_supplier.offload import MatrixRanks

OURS = "ranks"


class Matrix:
    """A matrix in Spark's memory, in the forms that the ways take. `right`: a vector, to multiply it with."""

    def __init__(self, spark, ranks, count, rows, columns):
        """count: ranks, which keep the order of rows if each has one partition."""
        self._frame = offload_data.matrix(spark, rows, columns, 2 * count)
        self._right = offload_data.matrix(spark, columns, 1, count)
        self.on_ranks = OnRanks(ranks, self._frame, self._right)
        self.right = offload_data.collected(self._right)
        self.mllib = MLlib(spark, self._frame)

    def release(self):
        self.mllib.release()
        for frame in (self._frame, self._right):
            frame.unpersist(blocking=True)


def one_round(matrix, name, ways, number):
    """ways: the others. Returns times by way, the differences of their answers from ours, and what is wrong."""
    job = JOBS[name]
    calls = {OURS: lambda: job.ours(matrix.on_ranks)}
    calls |= {way: lambda way=way: job.theirs[way](matrix) for way in ways}
    seconds, processor, answers = {}, {}, {}
    for way, call in quiet.turns(calls.items(), number):
        before, start = processor_seconds(os.getpid()), time.perf_counter()
        answers[way] = call()
        seconds[way] = (time.perf_counter() - start) / job.per
        processor[way] = (processor_seconds(os.getpid()) - before) / job.per
    differences = {way: job.difference(answers[OURS], answers[way]) for way in ways}
    wrong = [
        f"the answer of {way} is {difference:.2g} apart, more than {job.limit:g}"
        for way, difference in differences.items()
        if not difference <= job.limit
    ]
    return {"seconds": seconds, "processor": processor, "differences": differences, "wrong": wrong}


def answers(spark, ranks, count):
    """count: ranks."""
    matrix = None
    for line in sys.stdin:
        what = json.loads(line)
        if "job" in what:
            yield one_round(matrix, what["job"], what["ways"], what["number"])
            continue
        if matrix is not None:
            matrix.release()
        matrix = Matrix(spark, ranks, count, **what)
        yield {"conversion_s": matrix.mllib.conversion_s}


def main():
    local_dir, jar, heap_mib, ranks = (*sys.argv[1:3], *map(int, sys.argv[3:]))
    # MLlib warns of conversions, and of the BLAS that the table names.
    spark = session.start(local_dir, jar, heap_mib, ranks, **{"spark.log.level": "ERROR"})
    try:
        with MatrixRanks(spark, ranks) as of_session:
            print(json.dumps({"blas": native_blas(spark)}), flush=True)
            for answer in answers(spark, of_session, ranks):
                print(json.dumps(answer), flush=True)
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
