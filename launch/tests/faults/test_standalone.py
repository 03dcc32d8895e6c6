"""A standalone cluster: Spark takes its two workers for two hosts. Executors can be lost for good."""

import os
import signal
import time

import pytest

from fail_point import wait_until_stopped
from ranks import one_line
from supplier_program import SupplierProgram

pytestmark = pytest.mark.long

# Timeout of each wait on both sides, in seconds: a driver and its executors start meanwhile, on a busy machine.
PATIENT = 45


@pytest.fixture
def start_program(tmp_path):
    started = []

    def start(run, standalone, *options, **settings):
        environment = {"SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(tmp_path)}
        settings = {
            "spark.executor.memory": "512m",
            "spark.executor.defaultJavaOptions": f"-Djava.io.tmpdir={tmp_path}",
            **settings,
        }
        options += tuple(f"--conf={name}={value}" for name, value in settings.items())
        started.append(SupplierProgram(run, "--master", standalone.master, *options, environment=environment))
        return started[-1]

    yield start
    for program in started:
        program.end()


def test_speculation(make_run, start_standalone, start_program, counted, tmp_path):
    events = tmp_path / "events"
    events.mkdir()
    standalone = start_standalone(tmp_path, workers=2)
    # Both ranks are on the first worker's host. A copy of a task on the other host has no pair there.
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.2 slots=2\n")
    run = make_run(epochs=20, timeout=PATIENT)
    slow = run.ranks[1].process
    slow.send_signal(signal.SIGSTOP)
    wait_until_stopped(slow.pid)
    program = start_program(
        run,
        standalone,
        "--hosts",
        hosts,
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.5",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{events}",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        },
    )
    # The other rank has all its data. So Spark takes this rank's task for slow.
    assert run.finish_rank(0) == 0

    time.sleep(15)
    slow.send_signal(signal.SIGCONT)
    counted()
    run.ends_well()
    assert program.finish() == 0, program.error
    [log] = events.iterdir()
    assert any(
        "SparkListenerTaskStart" in line and '"Speculative":true' in line for line in log.read_text().splitlines()
    )


def test_executors_are_lost_for_good(make_run, start_standalone, start_program, counted, tmp_path):
    standalone = start_standalone(tmp_path, workers=1)
    run = make_run(endless=True, timeout=PATIENT)
    program = start_program(run, standalone)
    executors = {run.task_process(local_rank) for local_rank in run.ranks}
    [worker] = standalone.workers
    # The worker first: it would start another executor.
    for process in (worker.pid, *executors):
        os.kill(process, signal.SIGKILL)
        counted()
    assert run.finish_ranks() == [1, 1]
    for rank in run.ranks.values():
        text = one_line(rank)
        assert f"has left and no other attempt came within {PATIENT} s" in text and "Spark's log" in text
    assert program.finish() == 1
    text = program.failure()
    assert f"has had no Spark task for {PATIENT} s" in text and "lost for good" in text and "--timeout" in text
