"""A run that ends only by a fault."""

import contextlib

from faulty_run import FaultyRun
from soak.ground import RANKS, SHORT_TIMEOUT


@contextlib.contextmanager
def endless_run(ground, *options, database=None, wait=True):
    """wait: it is in the middle, and each rank has had blocks."""
    ground.wait_for_spark()
    run = FaultyRun(ground.pairs(), database or ground.database, 1_000_000, SHORT_TIMEOUT)
    try:
        for number in range(RANKS):
            run.start_rank(number, arguments=["--count"])
        run.start_supplier(ground.cluster, *options)
        for number in range(RANKS) if wait else ():
            run.wait_for_blocks(20, number)
        yield run
    finally:
        run.end()
