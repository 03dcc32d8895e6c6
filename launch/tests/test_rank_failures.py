"""A failure of a rank ends both sides. Each side prints one line that says what is wrong and what to do."""

import os
import signal

import pytest

import databases
import headers
from ranks import END_OF_PATIENCE, multiset, one_line
from supplier import SupplierFailure
from waiting import wait_until

MAJOR = 1 << 16

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


def test_a_supplier_that_never_comes(make_pairs, start_ranks):
    for rank in start_ranks(make_pairs(2), 2, timeout=1):
        assert rank.finish() == 1
        line = one_line(rank)
        assert f"pair {rank.local_rank}" in line and "no Spark task attached" in line and "SUPPLY_TIMEOUT" in line


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


@pytest.mark.parametrize("difference", [MAJOR, 7])
def test_a_contract_of_another_version(supplier, make_pairs, start_ranks, entries, difference):
    pairs = make_pairs(2)
    receivers = start_ranks(pairs, 2)
    version = wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    headers.write(pairs.mapped_file(0), "version", version + difference)
    text = failure_of(supplier.start(entries, pairs, *ENDLESS, ranks=2))
    ours, later = (f"{number // MAJOR}.{number % MAJOR}" for number in (version, version + difference))
    assert f"contract {later}" in text and ours in text and "same release" in text
    assert [rank.finish() for rank in receivers] == [1, 1]
    for rank in receivers:
        assert f"contract {later}" in one_line(rank) and "same release" in one_line(rank)


def test_no_space(supplier, make_pairs, start_rank, entries):
    file_system = os.statvfs("/dev/shm")
    twice = 2 * file_system.f_blocks * file_system.f_frsize
    pairs = make_pairs(1, ring=f"{twice >> 30}GiB", block="1GiB")
    rank = start_rank(pairs)
    assert rank.finish() == 1
    assert "no space" in one_line(rank) and "ring=" in one_line(rank) and "pair-0.mapped" in one_line(rank)
    text = failure_of(supplier.start(entries, pairs, timeout=2))
    assert "no rank has opened it" in text and "--rank-timeout" in text


def test_two_ranks_on_one_pair(supplier, make_pairs, start_rank, entries):
    pairs = make_pairs()
    first = start_rank(pairs)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    second = start_rank(pairs)
    assert second.finish() == 1
    assert f"in use by process {first.process.pid}" in one_line(second)
    supplier.start(entries, pairs).result()
    assert first.finish() == 0
    assert multiset([first]) == databases.expected_lines(entries)


def test_what_a_dead_rank_has_left_does_not_matter(supplier, make_pairs, start_rank, entries):
    pairs = make_pairs()
    killed = start_rank(pairs)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    killed.end()
    assert pairs.left_behind()
    run = supplier.start(entries, pairs)
    rank = start_rank(pairs)
    run.result()
    assert rank.finish() == 0
    assert multiset([rank]) == databases.expected_lines(entries)


def test_two_runs_at_once(supplier, make_pairs, start_ranks, tmp_path):
    runs = []
    for seed in (1, 2):
        database = databases.write(tmp_path / str(seed), databases.numbered(300, seed=seed))
        pairs = make_pairs(2)
        receivers = start_ranks(pairs, 2)
        runs.append((database, receivers, supplier.start(database, pairs, "--epochs", 50, ranks=2)))
    for database, receivers, run in runs:
        assert [rank.finish() for rank in receivers] == [0, 0]
        run.result()
        assert multiset(receivers) == databases.expected_lines(database, 50)
