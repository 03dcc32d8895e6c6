"""Runs whose executors Spark starts for them, and ends after them."""

import os
from unittest import mock

import pytest

from supplier_session import found_by

# Executors come and go three times.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["classic", "connect"])
def found(request):
    """What the runs of the program return, or say."""
    with mock.patch.dict(os.environ, SUPPLY_TEST_SESSION=request.param):
        return found_by("dynamic_program.py")


def test_spark_starts_executors_for_a_run(found):
    assert found["first"] == 100


def test_executors_that_went_after_a_run_come_again(found):
    assert (found["left"], found["second"]) == (0, 100)


def test_too_few_executors_are_named_with_the_setting(found):
    assert "9 ranks need 9 task slots" in found["many"] and "spark.dynamicAllocation.maxExecutors" in found["many"]


def test_executors_stay_until_the_ranks_start(found):
    before, after = found["slots"]
    assert found["late"] == 100 and sum(before.values()) == 6 and after == before
