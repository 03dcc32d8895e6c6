"""Spark Connect: a run, and what goes wrong. `make test-nightly PART=connect-1` runs others."""

import os
import signal
import threading
import time
from typing import Any

import pytest
import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows, RunError, Supplier
from spark_supplier.driver.sessions import session_of

from connect_server import connect_server
from supplier_session import rows, shared_memory

COUNT = 400
LIMIT_SECONDS = 60
# See supplier_session._stopped.
sessions: list[Any] = []


@pytest.fixture(scope="module")
def server():
    with connect_server("local[4]", spark_supplier.jars()) as started:
        yield started.remote


def connected(remote):
    sessions.append(spark_supplier.session(remote=remote))
    return sessions[-1]


@pytest.fixture(scope="module")
def spark(server):
    session = connected(server)
    yield session
    session.stop()


def predict(data, factor):
    print("a line", flush=True)
    with data.results() as out:
        for epoch in data.epochs():
            for batch in epoch:
                out.write({"id": batch["id"], "score": batch["id"].double() * factor})
    return int(os.environ["WORLD_SIZE"])


def test_predictions_come_back_and_join_the_input(spark, capfd):
    df = rows(spark, COUNT)
    with shared_memory() as folder:
        returned = Supplier(ranks=2, folder=folder).run(
            predict, Rows(df, uneven="keep"), factor=2.0, results="id, score double"
        )
        assert returned.value == 2
        assert df.join(returned.rows, "id").where("score = 2 * id").count() == COUNT == returned.rows.count()
        returned.release()
    printed = capfd.readouterr().out
    assert "[rank 0] a line" in printed and "[rank 1] a line" in printed


@pytest.mark.long
def test_ctrl_c_ends_ranks_and_jobs(spark):
    # That of a session of Spark Classic before, which has ended.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _interrupt(spark)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(spark):
    def waits(data):
        print("waiting", flush=True)
        time.sleep(1000)

    with shared_memory() as folder:
        threading.Timer(10, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            Supplier(ranks=1, folder=folder, backend=None).run(waits, rows(spark, COUNT))
        # The slots are free again.
        assert Supplier(ranks=2, folder=folder, backend=None).run(lambda data: len(list(data)), rows(spark, COUNT))
    # Spark counts tasks late.
    end = time.monotonic() + LIMIT_SECONDS
    while session_of(spark).slots().busy and time.monotonic() < end:
        time.sleep(0.1)
    assert session_of(spark).slots().busy == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "setting, text",
    [
        # Smaller than a part of the jar.
        ({"spark.connect.grpc.maxInboundMessageSize": 16384}, "does not have the Supplier's jar, and refuses it"),
        ({"spark.executor.userClassPathFirst": "true"}, "by addArtifacts, and its driver takes none while it runs"),
    ],
)
def test_a_server_that_takes_no_jar(setting, text):
    with connect_server("local[1]", None, **setting) as server:
        sessions.append(SparkSession.builder.remote(server.remote).create())
        with pytest.raises(RunError, match=f"{text}.*its administrator must start it with --jars") as raised:
            Supplier(ranks=1).run(list, sessions[-1].range(5))
        assert "\n" not in str(raised.value)


def test_a_jar_of_another_version(spark, monkeypatch):
    monkeypatch.setattr(spark_supplier, "__version__", "0.0.1")
    with pytest.raises(RunError, match=r"has the Supplier's jar of version [\d.]+, and this package is 0.0.1: install"):
        Supplier(ranks=1).run(list, rows(spark, COUNT))


@pytest.mark.long
def test_a_server_that_ends_during_a_run(tmp_path):
    started = tmp_path / "started"

    def waits(data):
        started.touch()
        time.sleep(1000)

    def kill(server):
        # Not before the run has begun: PySpark tries for ten minutes to reach a server for calls of its own.
        end = time.monotonic() + 3 * LIMIT_SECONDS
        while not started.exists() and time.monotonic() < end:
            time.sleep(0.1)
        server.process.kill()

    with shared_memory() as folder, connect_server("local[2]", spark_supplier.jars()) as server:
        spark = SparkSession.builder.remote(server.remote).create()
        sessions.append(spark)
        threading.Thread(target=kill, args=(server,), daemon=True).start()
        with pytest.raises(RunError, match="the server of Spark Connect has not answered for 60 s"):
            Supplier(ranks=1, folder=folder, backend=None).run(waits, rows(spark, COUNT))
