"""Whole runs on a cluster: the Supplier on YARN, the ranks by mpirun."""

import re
import shutil
import subprocess

import pytest

import databases
import headers
from places import HOMES, LAUNCH, ROOT, SUPPLY_CAT
from ranks import END_OF_PATIENCE
from waiting import wait_until


@pytest.fixture
def start_supply_run(cluster):
    """Starts launch/supply-run on the head, and ends it at the end of the test."""
    started = []

    def start(run, lmdb, *options, **environment):
        command = [LAUNCH / "supply-run", "--yarn", f"512m,{len(cluster.NODES)},2", *run.options()]
        command += ["--timeout", run.timeout, "--ranks", run.ranks, "--lmdb", lmdb, *options, "--", SUPPLY_CAT]
        started.append(
            subprocess.Popen(
                cluster.on("head", "exec", *map(str, command)),
                env={**run.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.communicate()


def driver_log(cluster, application):
    """The log of the Supplier's container, or None if it is not there yet."""
    containers = cluster("logs", application, check=False).stdout.split("Container: ")
    return next((log for log in containers if "User class threw exception" in log), None)


def finish(process):
    """Waits for the end. Returns stderr; `process.returncode` is the exit status."""
    return process.communicate(timeout=3 * END_OF_PATIENCE)[1]


def test_the_supplier_on_yarn(start_supply_run, make_run, database, remote, tmp_path):
    run = make_run(2, 2, timeout=240)
    # Settings of a site, with which Spark needs more memory for itself.
    settings = shutil.copytree(ROOT / "configs" / "spark", tmp_path / "spark")
    with open(settings / "spark-defaults.conf", "a") as defaults:
        defaults.write("spark.executor.memoryOverheadFactor 0.9\n")
        # These JVMs live for seconds.
        for side in ("driver", "executor"):
            defaults.write(f"spark.{side}.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1\n")
    process = start_supply_run(run, remote, "--epochs", 2, SPARK_CONF_DIR=str(settings))
    said = finish(process)
    assert process.returncode == 0, said
    assert run.lines() == databases.expected_lines(database, 2)


@pytest.mark.spark_3_5
def test_spark_3_5_on_the_same_yarn(start_supply_run, make_run, database, remote):
    run = make_run(1, 1, timeout=240)
    more_for_itself = "--conf=spark.executor.memoryOverheadFactor=0.9"
    process = start_supply_run(run, remote, more_for_itself, SPARK_HOME=str(HOMES["3.5"]))
    said = finish(process)
    assert process.returncode == 0, said
    assert run.lines() == databases.expected_lines(database)


@pytest.mark.long
def test_the_cause_of_a_failure_is_what_everybody_says_last(cluster, start_supply_run, make_run):
    process = start_supply_run(make_run(1, 1, timeout=240), "hdfs:///nowhere")
    said = finish(process).splitlines()
    cause = "there is no LMDB at hdfs:///nowhere: no such file or directory (--lmdb)"
    assert process.returncode == 1
    assert said[-1] == f"supply-run: the Supplier failed (status 1): supplier: error: {cause}"
    # mpirun ends the others as soon as one rank has ended.
    from_ranks = [line for line in said if line.startswith("supply-cat: ")]
    assert f"supply-cat: {cause}" in from_ranks
    assert set(from_ranks) <= {f"supply-cat: {cause}", "supply-cat: ended by SIGTERM"}
    [application] = set(re.findall("application_[0-9]+_[0-9]+", "\n".join(said)))
    # The logs arrive in HDFS a moment after the application's end.
    driver = wait_until(lambda: driver_log(cluster, application))
    assert cause in driver[driver.rindex("User class threw exception") :]


@pytest.mark.long
def test_the_application_master_is_killed(cluster, start_supply_run, make_run, remote):
    run = make_run(1, 1, timeout=240)
    process = start_supply_run(run, remote, "--epochs", 1000000)
    wait_until(lambda: all(headers.read(run.pair(node, 0), "published") for node in cluster.NODES), 2 * END_OF_PATIENCE)
    for node in cluster.NODES:
        cluster("on", node, "pkill -KILL --full deploy.yarn.ApplicationMaster", check=False)
    said = finish(process)
    assert process.returncode == 1
    last = said.splitlines()[-1]
    assert last.startswith("supply-run: the Supplier failed (status 1): supplier: error: Application application_")
    assert "failed 1 times" in last


@pytest.mark.long
def test_the_application_ends_with_the_command_that_has_submitted_it(cluster, start_supply_run, make_run, remote):
    run = make_run(1, 1, timeout=240)
    process = start_supply_run(run, remote, "--epochs", 1000000)
    wait_until(lambda: all(headers.read(run.pair(node, 0), "published") for node in cluster.NODES), 2 * END_OF_PATIENCE)
    process.terminate()
    finish(process)
    for node in cluster.NODES:
        wait_until(
            lambda: cluster("on", node, "pgrep --full 'deploy.yarn.[A]pplicationMaster'", check=False).returncode == 1
        )
    staged = cluster("fs", "-ls", "-C", "/user/*/.sparkStaging", check=False).stdout.split()
    # One folder belongs to the driver that runs here for all tests.
    assert len(staged) <= 1
