"""The soak's round on Kubernetes: pods are deleted, ranks killed, a node cut off; calls continue from checkpoints.

SOAK_MINUTES=3. The last line is that of the soak.
"""

import collections
import os
import random
import threading
import time

import pytest
from mini_kubernetes.commands import ClusterError
from spark_supplier import Rows, Supplier
from spark_supplier.errors import RunError

from rank_functions import see_slowly
from test_kubernetes import LOST_SOON, PATIENCE, assert_nothing_left, executors, frame

pytestmark = pytest.mark.long

SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "3"))
EPOCHS, RANKS, MOST_RESTARTS = 8, 4, 20
# Of each call, and in seconds, from one to the next.
MOST_FAULTS, PAUSE = 5, (1, 10)
# Until a node that says nothing is lost, and longer.
CUT_SECONDS = (5, 45)


class Faults:
    """At random, in a thread, while a call runs."""

    def __init__(self, cluster, chance):
        self._cluster, self._chance = cluster, chance
        self.counts = collections.Counter()
        self._over = threading.Event()

    def __enter__(self):
        self._over.clear()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _go_on(self):
        for _ in range(self._chance.randint(1, MOST_FAULTS)):
            if self._over.wait(self._chance.uniform(*PAUSE)):
                return
            fault = self._chance.choices([self._kill_rank, self._delete_pod, self._cut_node], [5, 3, 1])[0]
            # A pod may have gone meanwhile.
            try:
                fault()
            except ClusterError:
                continue
            self.counts[fault.__name__.strip("_")] += 1

    def _pod(self):
        pods = sorted(executors(self._cluster))
        if not pods:
            raise ClusterError("no executor")
        return self._chance.choice(pods)

    def _kill_rank(self):
        # An image of Spark has no pgrep.
        one = "$(grep -las [s]park_supplier.node.rank /proc/[0-9]*/cmdline | head -1 | cut -d/ -f3)"
        self._cluster.kubectl("exec", self._pod(), "--", "sh", "-c", f"kill -9 {one}")

    def _delete_pod(self):
        self._cluster.kubectl("delete", "pod", self._pod(), "--force", "--grace-period=0")

    def _cut_node(self):
        try:
            self._cluster.cut("node-2")
            self._over.wait(self._chance.uniform(*CUT_SECONDS))
        finally:
            self._cluster.cut("node-2", off=False)


def test_each_row_once_whatever_happens(cluster, driver, tmp_path):
    spark = driver.session(**LOST_SOON)
    seed = random.SystemRandom().randrange(1 << 32)
    faults = Faults(cluster, random.Random(seed))
    runs = failed = elements = lost = duplicated = 0
    begin = time.monotonic()
    while time.monotonic() < begin + SECONDS:
        try:
            with faults:
                supplier = Supplier(
                    RANKS, min_ranks=2, restarts=MOST_RESTARTS, checkpoints=tmp_path / str(runs + failed),
                    start_timeout=90,
                )  # fmt: skip
                found = supplier.run(
                    see_slowly, Rows(frame(spark), uneven="keep", order="global", batch_size=8, epochs=EPOCHS)
                )
        except RunError as error:
            failed += 1
            print(f"soak: failed: {error}")
            continue
        runs += 1
        received = collections.Counter(found)
        expected = collections.Counter(
            (epoch, number) for epoch in range(EPOCHS) for number in range(frame(spark).count())
        )
        elements += received.total()
        lost += (expected - received).total()
        duplicated += (received - expected).total()
    assert_nothing_left(cluster, PATIENCE)
    driver.stop()
    counts = " ".join(f"{name}={count}" for name, count in sorted(faults.counts.items()))
    minutes = round((time.monotonic() - begin) / 60)
    print(
        f"soak: kubernetes seed={seed} minutes={minutes} runs={runs} failed={failed} {counts} "
        f"faults={faults.counts.total()} elements={elements} lost={lost} duplicated={duplicated}"
    )
    assert (failed, lost, duplicated) == (0, 0, 0) and faults.counts.total() > 0
