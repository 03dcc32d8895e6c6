"""A process of a run stands still for longer than the limit: all fail with one line, and it ends when it continues."""

from ranks import one_line
from soak.endless_run import endless_run
from soak.ground import RANKS, SHORT_TIMEOUT, STUCK

NOTHING_SUPPLIED = f"is attached and has supplied nothing for {SHORT_TIMEOUT} s"


def rank_suspended(ground):
    with endless_run(ground) as run:
        with ground.suspended(run.ranks[0].process.pid):
            text = run.fails()
        assert f"released no block for {SHORT_TIMEOUT} s" in text, text
        _all_say(run, text)


def executor_suspended(ground):
    with endless_run(ground) as run:
        with ground.suspended(run.task_process()):
            # Also Spark's own time, until it takes the executor for lost.
            text = run.fails(STUCK)
        # The next attempt finds the failed rank, or none any more.
        assert NOTHING_SUPPLIED in text or "no rank has opened it" in text, text
        assert run.finish_ranks() == [1] * RANKS
        for rank in run.ranks.values():
            # A rank finds out itself, or is told.
            assert NOTHING_SUPPLIED in (line := one_line(rank)) or line == text, line


def _all_say(run, text):
    assert run.finish_ranks() == [1] * RANKS
    assert [one_line(rank) for rank in run.ranks.values()] == [text] * RANKS
