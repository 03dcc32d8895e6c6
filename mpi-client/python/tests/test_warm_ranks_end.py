"""Ranks that a Supplier keeps end with their executor, with the session, and with the driver."""

import pytest

from supplier_session import found_by

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def found():
    """What the program has found. It ends by SIGKILL while ranks wait for a call, and nothing is left then."""
    return found_by("warm_program.py")


def test_every_call_gets_all_rows(found):
    calls = ["first", "second", "after the executor", "in another session", "of the driver"]
    assert [found[name][1] for name in calls] == [100] * len(calls)


def test_a_call_after_the_executor_was_killed_has_other_ranks(found):
    assert found["first"] == found["second"]
    assert found["after the executor"] != found["second"]


def test_ranks_end_with_the_session(found):
    assert found["with the session"] is False
    assert found["in another session"] != found["after the executor"] and found["left"] == []
