"""Fixtures of the fault tests (`make test-faults`). They run in a pytest of their own, with its own Spark."""

import pytest

pytest.register_assert_rewrite("faulty_run")

from cluster import Cluster
from fail_point import FailPoint
from faulty_run import TIMEOUT, FaultyRun
from standalone import Standalone
from tally import TALLY


def pytest_unconfigure():
    """Prints the last line, after pytest's own."""
    print(TALLY.line("test-faults"))


@pytest.fixture(scope="session")
def fail_point(tmp_path_factory):
    return FailPoint(tmp_path_factory.mktemp("fail-point"))


@pytest.fixture
def fault(fail_point):
    """Arms a fail point, and counts it."""

    def arm(step, action, after=0):
        TALLY.faults += 1
        fail_point.arm(step, action, after)
        return fail_point

    yield arm
    fail_point.disarm()


@pytest.fixture
def counted():
    """Counts faults that a test causes without a fail point."""

    def count(number=1):
        TALLY.faults += number

    return count


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, fail_point):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), fail_point)
    yield cluster
    cluster.stop()


@pytest.fixture
def make_run(make_pairs, database, fail_point):
    """
    Makes the pairs and ranks of a run, without a Supplier. faulty_ranks: the ranks with fail points. endless: the run
    fails in the middle, and the elements until then are not kept.
    """
    made = []

    def make(ranks=2, epochs=3, pairs=None, faulty_ranks=(), timeout=TIMEOUT, endless=False):
        pairs = pairs or make_pairs(ranks, ring="16KiB", block="4KiB")
        made.append(FaultyRun(pairs, database, 1_000_000 if endless else epochs, timeout))
        for local_rank in range(ranks):
            environment = fail_point.environment if local_rank in faulty_ranks else ()
            made[-1].start_rank(local_rank, environment, ["--count"] if endless else [])
        return made[-1]

    yield make
    for run in made:
        run.end()


@pytest.fixture
def start_run(cluster, make_run):
    """A run with the Supplier of the cluster."""

    def start(*options, **settings):
        run = make_run(**settings)
        run.start_supplier(cluster, *options)
        return run

    return start


@pytest.fixture
def start_standalone():
    started = []

    def start(folder, **settings):
        started.append(Standalone(folder, **settings))
        return started[-1]

    yield start
    for standalone in started:
        standalone.stop()
