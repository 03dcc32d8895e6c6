"""The order in which reports of a rank and of its node arrive is not fixed: a large result arrives last."""

from typing import Any

import pytest
from spark_supplier.driver.launcher import TorchLauncher
from spark_supplier.driver.mpirun_launcher import MpirunEnded, MpirunLauncher
from spark_supplier.node.messages import RankEnded, RankStarted, Result

NO_RESULT = "rank 0 on host exited with status 0 before it returned a result"


@pytest.fixture
def rank() -> Any:
    """A rank at the hub."""
    return object()


@pytest.fixture(params=["torch", "mpirun"])
def launcher(request):
    """A launcher of one rank, and the report that the rank's process has ended well."""
    if request.param == "torch":
        return TorchLauncher(1), RankEnded(0, "host", 0, False)
    return MpirunLauncher(1, None), MpirunEnded(0, "")


def test_a_result_after_the_end_of_its_rank(launcher, rank):
    launcher, ended = launcher
    reports = [(rank, RankStarted(0, "host", 1)), (None, ended), (rank, Result(0, True, b"")), (rank, None)]
    # The driver does not count an end after a result.
    causes = [launcher.handle(peer, message) for peer, message in reports][:3]
    assert causes == [None, None, None]


def test_an_end_without_a_result(launcher, rank):
    launcher, ended = launcher
    assert launcher.handle(rank, RankStarted(0, "host", 1)) is None
    assert launcher.handle(None, ended) is None
    assert str(launcher.handle(rank, None).error) == NO_RESULT


def test_an_end_after_the_connection(launcher, rank):
    launcher, ended = launcher
    assert launcher.handle(rank, RankStarted(0, "host", 1)) is None
    assert launcher.handle(rank, None) is None
    assert str(launcher.handle(None, ended).error) == NO_RESULT
