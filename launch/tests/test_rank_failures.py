"""A failure of a rank ends both sides. Each side prints one line that says what is wrong and what to do."""

import signal

import pytest

import databases
import headers
from ranks import END_OF_PATIENCE, one_line
from supplier import SupplierFailure
from waiting import wait_until

# No rank has all its data before another rank fails.
ENDLESS = ("--epochs", 100_000)


@pytest.fixture
def entries(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(200))


@pytest.fixture
def endless(supplier, make_pairs, start_ranks, entries):
    """Two ranks in the middle of a long run. Returns the pairs, the ranks and the run."""
    pairs = make_pairs(2, ring="64KiB")
    receivers = start_ranks(pairs, 2)
    run = supplier.start(entries, pairs, *ENDLESS, ranks=2)
    for local_rank in range(2):
        wait_until(lambda: headers.read(pairs.mapped_file(local_rank), "published"))
    return pairs, receivers, run


def failure_of(run):
    with pytest.raises(SupplierFailure) as failure:
        run.result()
    return str(failure.value)


def test_a_rank_that_never_comes(supplier, make_pairs, start_rank, entries):
    pairs = make_pairs(2)
    only = start_rank(pairs, 0, arguments=["--count"])
    text = failure_of(supplier.start(entries, pairs, *ENDLESS, ranks=2, timeout=2))
    assert (
        "rank 1" in text
        and "no rank has opened it" in text
        and "mapped-files.conf" in text
        and "--rank-timeout" in text
    )
    assert only.finish() == 1
    assert one_line(only) == text


def test_a_rank_that_is_killed(endless):
    pairs, (killed, other), run = endless
    killed.process.kill()
    text = failure_of(run)
    assert (
        "rank 0" in text
        and f"process {killed.process.pid}" in text
        and "ended before it had taken all its data" in text
    )
    assert killed.finish() == -signal.SIGKILL
    assert other.finish() == 1
    assert one_line(other) == text
    assert pairs.clean() == ["pair-0.mapped", "pair-0.notification", "pair-0.request"]


def test_the_only_rank_is_killed(supplier, make_pairs, start_rank, entries):
    """The driver does not wait for a rank that has ended, even if the timeout is long."""
    pairs = make_pairs()
    rank = start_rank(pairs)
    run = supplier.start(entries, pairs, *ENDLESS, timeout=10 * END_OF_PATIENCE)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "published"))
    rank.process.kill()
    with pytest.raises(SupplierFailure, match="ended before it had taken all its data"):
        run.result(timeout=END_OF_PATIENCE)
    pairs.clean()


def test_a_rank_that_is_ended(endless):
    _, (other, ended), run = endless
    ended.process.terminate()
    text = failure_of(run)
    assert "rank 1" in text and "the rank failed: supply-cat was ended by a signal" in text
    assert ended.finish() == 128 + signal.SIGTERM
    assert other.finish() == 1
    assert one_line(other) == text


def test_a_rank_that_stalls(supplier, make_pairs, start_rank, entries):
    pairs = make_pairs(1, ring="64KiB")
    stalled = start_rank(pairs)
    run = supplier.start(entries, pairs, *ENDLESS, timeout=3)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "published"))
    stalled.process.send_signal(signal.SIGSTOP)
    text = failure_of(run)
    assert f"process {stalled.process.pid}" in text and "released no block for 3 s" in text and "--rank-timeout" in text
    stalled.process.send_signal(signal.SIGCONT)
    assert stalled.finish() == 1
    assert one_line(stalled) == text


@pytest.mark.parametrize("shorter", ["mapped_files", "named_pipes"])
def test_config_files_of_different_length(supplier, make_pairs, start_ranks, entries, shorter):
    """Other mistakes in them are tested on each side alone."""
    pairs = make_pairs(2)
    file = getattr(pairs, shorter)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    receivers = start_ranks(pairs, 2)
    text = failure_of(supplier.start(entries, pairs, ranks=2, timeout=5))
    assert [rank.finish() for rank in receivers] == [1, 1]
    for message in (text, *map(one_line, receivers)):
        assert "mapped-files.conf has" in message and "named-pipes.conf has" in message
        assert "line i of both belongs to local rank i" in message
