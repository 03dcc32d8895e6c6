"""Ranks whose pairs feeders open in the same mpirun. The tasks are the test's own. RemoteMpiTest has the same in C."""

import os
import signal
import subprocess

import pyarrow
import pytest
import spark_supplier

from exchanging import SCHEMA, check_all_once, ids_of, row
from fed_job import EPOCHS, LIMIT_SECONDS, NEEDS_MPI, PYTHON_FEEDER
from layout import ROOT
from task import wait_until

pytestmark = NEEDS_MPI

C_FEEDER = [str(ROOT / "build" / "mpi-client" / "supply-feeder")]


def read_all(job, feeders, ranks, sizes, action="read", *values, **options):
    """What each rank has written, and what was printed."""
    job.start(feeders, ranks, action, *values, **options)
    tasks = job.feed(sizes)
    printed = job.succeed()
    for task in tasks:
        task.join()
    return job.outcomes(), printed


@pytest.mark.parametrize("feeder, feeders, ranks", [
    (PYTHON_FEEDER, 1, 1), (C_FEEDER, 2, 3), (C_FEEDER, 3, 2),
    *(pytest.param(*each, marks=pytest.mark.long) for each in (
        (C_FEEDER, 1, 1), (PYTHON_FEEDER, 2, 3), (PYTHON_FEEDER, 3, 2),
    )),
])  # fmt: skip
def test_all_once(make_job, feeder, feeders, ranks):
    sizes = [[30, 30, 1], [47], []][: max(feeders, ranks)]
    received, printed = read_all(make_job(len(sizes)), feeders, ranks, sizes, feeder=feeder)
    assert len(received) == ranks
    check_all_once(sizes, received, EPOCHS)
    assert printed.count("supply-feeder: node ") == feeders
    if feeders == 1:
        assert f"sent {EPOCHS * 61} elements, 0.000 GB, of 1 pairs (from 0)" in printed


def test_without_feeders_each_rank_has_its_pair(make_job):
    sizes = [[30, 30], [47]]
    received, _ = read_all(make_job(2), 0, 2, sizes)
    check_all_once(sizes, received, EPOCHS)
    assert {row["id"] // 1000 for row in received[0][0]} == {0}


@pytest.mark.parametrize("feeders, ranks", [pytest.param(1, 2, marks=pytest.mark.long), (3, 2)])
def test_an_exchange_of_the_ranks(make_job, feeders, ranks):
    sizes = [[40, 40], [20], [50]][: max(feeders, ranks)]
    received, _ = read_all(make_job(len(sizes)), feeders, ranks, sizes, "exchange")
    check_all_once(sizes, received, EPOCHS)
    senders = {len({row["id"] // 1000 for row in epochs[0]}) for epochs in received}
    assert senders == {len(sizes)}, "the ranks have exchanged elements"


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_data_set(make_job, workers):
    sizes = [[30, 30, 1], [47]]
    received, _ = read_all(make_job(2), 1, 2, sizes, "dataset", str(workers))
    assert received == [[[0, 1], [[*ids_of(rank, sum(sizes[rank]))]] * EPOCHS] for rank in range(2)]


@pytest.mark.long
def test_a_data_set_of_several_pairs(make_job):
    (epochs,), _ = read_all(make_job(2), 2, 1, [[30, 30], [47]], "dataset_of_several_pairs")
    assert list(map(sorted, epochs)) == [[*ids_of(0, 60), *ids_of(1, 47)]] * EPOCHS


def test_results_are_refused(make_job):
    ((text, received),), _ = read_all(make_job(1), 1, 1, [[30]], "results")
    assert "results" in text and "feeder" in text, text
    check_all_once([[30]], [received], EPOCHS)


def test_a_signal_ends_a_wait(make_job):
    job = make_job(1)
    job.start(1, 1, "interrupt")
    wait_until("the signal", (job.folder / "interrupted").exists)
    tasks = job.feed([[30]])
    job.succeed()
    for task in tasks:
        task.join()
    check_all_once([[30]], job.outcomes(), EPOCHS)


def test_sparks_failure_arrives(make_job):
    job = make_job(1)
    job.start(1, 1, "fail")
    task = job.pairs[0].task()
    task.fail("the source is gone")
    printed, status = job.wait()
    task.leave()
    assert status == 1, printed
    ((name, text),) = job.outcomes()
    assert name == "SparkError" and "the source is gone" in text and "node " in text, text
    assert "supply-feeder: pair 0: " in printed and "the source is gone" in printed


def test_a_feeder_without_config_files(make_job):
    job = make_job(2)
    job.environment["SUPPLY_MAPPED_FILES"] = "/nonexistent.conf"
    job.start(1, 2, "fail_to_open", "all")
    printed, status = job.wait()
    for name, text in job.outcomes():
        assert name == "ConfigError" and "/nonexistent.conf" in text, text
    assert len(job.outcomes()) == 2
    assert status == 1, printed


@pytest.mark.long
def test_a_rank_that_does_not_open_its_pair(make_job):
    job = make_job(2, timeout=0.5)
    job.start(0, 2, "open_alone")
    _, status = job.wait()
    ((name, text),) = job.outcomes()
    assert name == "SupplyTimeoutError" and "has not called ranks.open(feeders=...), and is no feeder, for 1 s" in text
    assert status != 0


@pytest.mark.long
def test_a_suspended_feeder_is_named(make_job):
    job = make_job(1, timeout=3)
    job.start(1, 1, "fail", feeder=[*PYTHON_FEEDER, "--timeout", str(LIMIT_SECONDS)])
    task = job.pairs[0].task()
    feeder = task.header("rank_pid")
    task.supply(pyarrow.RecordBatch.from_pylist([row(0)], SCHEMA))
    wait_until("the first block's release", lambda: task.header("released") == 1)
    os.kill(feeder, signal.SIGSTOP)
    try:
        _, status = job.wait()
    finally:
        os.kill(feeder, signal.SIGCONT)
    task.leave()
    ((name, text),) = job.outcomes()
    assert name == "SupplyTimeoutError" and "supply-feeder on node " in text and "is it stopped" in text, text
    assert status != 0


@pytest.mark.parametrize(
    "options, text",
    [
        (["--timeout", "0"], "invalid number of seconds larger than 0 value: '0'"),
        (["--what"], "unrecognized arguments: --what"),
        ([], "supply-feeder: no --mapped-files given: set it, or SUPPLY_MAPPED_FILES"),
    ],
    ids=["timeout", "unknown", "no files"],
)
def test_wrong_options_of_the_feeder(options, text):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUPPLY_")}
    ended = subprocess.run([*PYTHON_FEEDER, *options], env=environment, capture_output=True, text=True)
    assert ended.returncode == 2
    assert text in ended.stderr


def test_a_communicator_that_is_none(files):
    with pytest.raises(spark_supplier.ConfigError, match="feeders is 3, must be a communicator of mpi4py"):
        spark_supplier.ranks.open(files.folder, 0, feeders=3)
