"""Runs of an application whose executors come with tasks, and go without: `dynamic_program.py FOLDER`.

For test_dynamic_allocation.
"""

import contextlib
import json
import sys
import time
from unittest import mock

import spark_supplier
from spark_supplier import Rows, Supplier
from spark_supplier.driver.sessions import session_of
from spark_supplier.driver.spark_jobs import SparkJobs

from supplier_session import made_session, over_connect

LIMIT_SECONDS = 60
MASTER = "local-cluster[2,3,1024]"
# Longer than executors live without a task.
PAUSE_SECONDS = 12
SETTINGS = {
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "6s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "6s",
    # Spark drops most events of jobs: no run may wait for one.
    "spark.scheduler.listenerbus.eventqueue.appStatus.capacity": "1",
}  # fmt: skip


def count(data):
    import torch
    from torch import distributed

    rows = torch.tensor(sum(len(batch["key"]) for batch in data))
    distributed.all_reduce(rows)
    return rows.item()


@contextlib.contextmanager
def pause_before_start(session):
    """Between the wait for slots and the start of the ranks. Yields the slots before and after it."""
    start, slots = SparkJobs.start_nodes, []

    def start_late(jobs, specs):
        slots.append(session.slots().slots)
        time.sleep(PAUSE_SECONDS)
        slots.append(session.slots().slots)
        start(jobs, specs)

    with mock.patch.object(SparkJobs, "start_nodes", start_late):
        yield slots


def main():
    with made_session(MASTER, SETTINGS, over_connect()) as spark:
        print(json.dumps(found_with(spark)))


def found_with(spark):
    session = session_of(spark)
    # After a shuffle, whose files are on the executors.
    df = spark.range(0, 1000, 1, 3).selectExpr("id % 100 AS key").groupBy("key").count()

    def run(ranks, **options):
        try:
            return Supplier(ranks, folder=sys.argv[1], **options).run(count, Rows(df, uneven="keep"))
        except spark_supplier.RunError as error:
            return str(error)

    def await_no_executor():
        end = time.monotonic() + LIMIT_SECONDS
        while session.slots().slots and time.monotonic() < end:
            time.sleep(0.1)
        return len(session.slots().slots)

    found = {"first": run(4), "left": await_no_executor(), "second": run(4), "many": run(9, start_timeout=20)}
    with pause_before_start(session) as slots:
        # All slots.
        found["late"] = run(5)
    return {**found, "slots": slots}


if __name__ == "__main__":
    main()
