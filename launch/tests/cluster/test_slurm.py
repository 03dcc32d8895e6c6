"""Spark and ranks in an allocation of a real Slurm: by launch/slurm-run, and by one call from PySpark."""

import pytest

import headers
import slurm
from places import DIGITS, JAR, LAUNCH, PROGRAMS, SUPPLY_CAT
from processes import Mark
from ranks import END_OF_PATIENCE
from test_offload import PROGRAM as OFFLOAD
from test_offload import compile_routines, needs_server
from test_one_call import ON_BOTH_NODES, PROGRAM, PYTHON, needs_pytorch
from waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(slurm.missing()), reason=f"no {', '.join(slurm.missing())} here (launch/dev/install-packages --for-long)"
    ),
]

# Each job starts and ends a Spark.
PATIENCE = 2 * END_OF_PATIENCE


@pytest.fixture(scope="module")
def manager(cluster, tmp_path_factory):
    manager = slurm.Slurm(cluster, tmp_path_factory.mktemp("slurm"))
    yield manager
    manager.stop()


@pytest.fixture
def submit(cluster, manager, tmp_path):
    """Submits a job. After its end nothing of it may be left on any node."""
    jobs = []
    before = {node: set(cluster.memory(node).iterdir()) for node in cluster.NODES}

    def submit(*command, patience=0):
        """patience: how many seconds its processes may outlive the job."""
        mark = Mark()
        jobs.append((manager.submit(tmp_path, mark, *command), mark, patience))
        return jobs[-1][0]

    yield submit
    for job, mark, patience in jobs:
        manager("scancel", job)
        wait_until(lambda: manager.ended(job), PATIENCE)
        wait_until(lambda: mark.processes() == [], patience)
        assert list((tmp_path / "temporary").iterdir()) == []
        assert list(tmp_path.glob("supply-*")) == []
        for node in cluster.NODES:
            assert set(cluster.memory(node).iterdir()) - before[node] == set()


def slurm_run(*options, program=SUPPLY_CAT):
    """A job that only calls slurm-run."""
    words = [LAUNCH / "slurm-run", "--executor-memory", "512m", *options, "--", program]
    return ["--wrap", f"'exec {' '.join(map(str, words))}'"]


def output_of(manager, job, tmp_path):
    """Waits for the end of the job. Returns the lines of its output."""
    wait_until(lambda: manager.ended(job), PATIENCE)
    return (tmp_path / "output").read_text().splitlines()


def wait_until_supplied(cluster, manager, job, tmp_path):
    """Until each of the four ranks has a block."""

    def is_supplied():
        pairs = [pair for node in cluster.NODES for pair in cluster.memory(node).glob("supply-*/*.mapped")]
        return len(pairs) == 4 and all(headers.read(pair, "published") for pair in pairs)

    wait_until(lambda: manager.ended(job) or is_supplied(), PATIENCE)
    assert manager.state(job) == "RUNNING", output_of(manager, job, tmp_path)


def test_training(manager, submit, tmp_path):
    options = ("--lmdb", DIGITS / "train_lmdb", "--epochs", 3, "--block-elements", 32)
    job = submit(*slurm_run("--folder", ".", *options, program=PROGRAMS / "train-digits"))
    output = output_of(manager, job, tmp_path)
    assert manager.state(job) == "COMPLETED", output
    assert any(line.startswith("train-digits: ranks=4 epochs=3 elements=4311 ") for line in output), output


def test_a_failure_is_the_last_line_of_the_job(manager, submit, tmp_path):
    job = submit(*slurm_run("--lmdb", "/nowhere"))
    output = output_of(manager, job, tmp_path)
    assert (manager.state(job), manager.exit_status(job)) == ("FAILED", 1)
    cause = "there is no LMDB at /nowhere: no such file or directory (--lmdb)"
    assert output[-1] == f"supply-run: the Supplier failed (status 1): supplier: error: {cause}"


def test_a_job_that_is_cancelled(cluster, manager, submit, tmp_path, database):
    job = submit(*slurm_run("--lmdb", database, "--epochs", 1000000))
    wait_until_supplied(cluster, manager, job, tmp_path)
    manager("scancel", job)
    output_of(manager, job, tmp_path)
    assert manager.state(job) == "CANCELLED"


def test_a_worker_is_killed(cluster, manager, submit, tmp_path, database):
    job = submit(*slurm_run("--lmdb", database, "--epochs", 1000000))
    wait_until_supplied(cluster, manager, job, tmp_path)
    cluster.signal("node-2", "KILL", "deploy.worker.Worker")
    output = output_of(manager, job, tmp_path)
    assert (manager.state(job), manager.exit_status(job)) == ("FAILED", 1)
    assert output[-1] == "slurm-run: error: the Spark worker on node-2 ended (the end of its log is above)"


def one_call(epochs):
    """A job of PySpark with Spark's executors on YARN. PySpark's JVM ends after the program."""
    words = ["env", "-u", "SPARK_HOME", f"PYSPARK_PYTHON={PYTHON}", PYTHON, PROGRAM, JAR, "$(hostname)", epochs]
    return ["--wrap", f"'exec {' '.join(map(str, words))} mpirun'"]


@needs_pytorch
def test_one_call(manager, submit, tmp_path):
    job = submit(*one_call(epochs=1), patience=END_OF_PATIENCE)
    output = output_of(manager, job, tmp_path)
    assert manager.state(job) == "COMPLETED", output
    assert f"mpirun: {ON_BOTH_NODES}" in output


@needs_pytorch
def test_one_call_that_is_cancelled(cluster, manager, submit, tmp_path):
    job = submit(*one_call(epochs=1000000), patience=END_OF_PATIENCE)
    wait_until_supplied(cluster, manager, job, tmp_path)
    manager("scancel", job)
    output_of(manager, job, tmp_path)
    assert manager.state(job) == "CANCELLED"


@needs_server
def test_routines_of_ranks_in_the_allocation(manager, submit, tmp_path):
    libraries = [f"{name}={value}" for name, value in compile_routines(tmp_path / "libraries").items()]
    words = ["env", "-u", "SPARK_HOME", f"PYSPARK_PYTHON={PYTHON}", *libraries, PYTHON, OFFLOAD, JAR, "$(hostname)"]
    job = submit("--wrap", f"'exec {' '.join(map(str, words))} start'", patience=END_OF_PATIENCE)
    output = output_of(manager, job, tmp_path)
    assert manager.state(job) == "COMPLETED", output
    assert "start: True" in output
