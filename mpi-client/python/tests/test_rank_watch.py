"""Which rank waits for whom, without processes."""

import pytest
from spark_supplier.driver.rank_watch import RankWatch, named, who_waits
from spark_supplier.node.messages import Loop, Progress

LIMIT = 10


class Clock:
    """In place of the module time."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def pass_time(self, watch, seconds):
        """The ranks that the watch finds stalled first, if a driver watches."""
        for _ in range(2 * seconds):
            self.now += 0.5
            if stalled := watch.stalled(LIMIT):
                return stalled
        return []


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("spark_supplier.driver.rank_watch.time", made)
    return made


def progress(rank, elements=0, waits_for=None, epoch=0):
    return Progress(rank, epoch, elements, None, 0, waits_for, None)


def watch(*reports, exchanges=False, ranks=2):
    made = RankWatch(ranks, 1, exchanges)
    for report in reports:
        made.note(report)
    return made


def test_a_rank_that_computes_stalls_and_one_that_waits_for_it_does_not(clock):
    both = watch(progress(0, 5, "other ranks"), progress(1, 5))
    assert clock.pass_time(both, LIMIT - 1) == []
    assert clock.pass_time(both, 3) == [1]
    assert both.waits(LIMIT) == (LIMIT + 0.5, "rank 0: waiting for other ranks; rank 1: computing, while Spark waits")


def test_ranks_that_all_wait_for_others_stall(clock):
    both = watch(progress(0, 5, "other ranks"), progress(1, 5))
    both.note_return(1)
    assert clock.pass_time(both, LIMIT + 1) == [0]


def test_while_a_rank_waits_for_spark_no_rank_stalls(clock):
    both = watch(progress(0, 5, "other ranks"), progress(1, 5, "Spark"))
    assert clock.pass_time(both, 10 * LIMIT) == []
    assert "rank 1: waiting for Spark" in both.waits(LIMIT)[1]
    both.note(progress(1, 6))
    assert clock.pass_time(both, LIMIT - 1) == []
    assert clock.pass_time(both, 3) == [1]


def test_a_short_wait_for_spark_hides_no_rank_that_hangs(clock):
    both = watch(progress(0), progress(1))
    for step in range(LIMIT - 1):
        both.note(progress(1, step, "Spark" if step % 2 else None))
        assert clock.pass_time(both, 1) == []
    assert clock.pass_time(both, 3) == [0]


def test_ranks_that_exchange_wait_for_each_other(clock):
    both = watch(progress(0, 5, "Spark"), progress(1, 5), exchanges=True)
    assert clock.pass_time(both, LIMIT + 1) == [1]
    both = watch(progress(0, 5, "Spark"), progress(1, 5, "Spark"), exchanges=True)
    assert clock.pass_time(both, 10 * LIMIT) == []


def test_a_rank_that_hangs_makes_those_wait_for_spark_that_read_its_ring(clock):
    made = watch(progress(0, 5, "Spark"), progress(1, 5), progress(2), progress(3), ranks=4)
    made.groups = {0: "ring", 1: "ring", 2: "other", 3: "other"}
    assert clock.pass_time(made, LIMIT + 1) == [1, 2, 3]
    for rank in (2, 3):
        made.note(progress(rank, 6, "Spark"))
    made.restart()
    assert clock.pass_time(made, 10 * LIMIT) == []


def test_a_rank_that_has_returned_explains_nothing_of_another_function():
    made = watch(ranks=4)
    for rank, batches in ((0, 0), (1, 5), (2, 0), (3, 5)):
        made.note(Progress(rank, 0, 0, None, 0, None, Loop(0, batches, False)))
    made.note_return(0)
    assert "rank 0 has returned" in made.uneven().text
    made.functions = 2
    assert "while rank 2" in made.uneven().text
    made.note_return(2)
    assert made.uneven() is None


def test_a_suspended_driver_finds_no_rank_stalled(clock):
    both = watch(progress(0), progress(1))
    clock.pass_time(both, 1)
    clock.now += 100 * LIMIT
    assert both.stalled(LIMIT) == []
    assert clock.pass_time(both, LIMIT - 1) == []


def test_a_rank_after_its_data_and_one_that_has_returned(clock):
    both = watch(progress(0, 5, epoch=1), progress(1))
    both.note_return(1)
    clock.now += LIMIT
    assert both.waits(LIMIT) == (LIMIT, "rank 0: computing after the last row")


@pytest.mark.parametrize("mine, other, text", [
    ((0, 3, False), (0, 5, False), "rank 1 has returned after 3 batches of epoch 0, while rank 0 has had 5 of epoch 0"),
    ((0, 3, False), (0, 3, False), "rank 1 has returned after 3 batches of epoch 0, while rank 0 has had 3 of epoch 0"),
    ((0, 0, False), (2, 1, False), "rank 1 has returned after 0 batches of epoch 0, while rank 0 has had 1 of epoch 2"),
    ((1, 4, True), (1, 5, False), "rank 1 has had all its rows of epoch 1 (4 batches) and has returned, while rank 0"),
    ((0, 3, False), (0, 2, False), None),
    ((0, 3, True), (0, 3, True), None),
])  # fmt: skip
def test_a_rank_that_has_returned_is_named(mine, other, text):
    found = who_waits({1: Loop(*mine), 0: Loop(*other)}, {1})
    assert (found and found.text[: len(text or "")]) == text


def test_many_ranks_are_counted():
    assert named(range(10)) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
