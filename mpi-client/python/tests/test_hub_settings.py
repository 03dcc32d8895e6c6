"""The hub of a server of Spark Connect, by settings with which the server starts."""

import contextlib
import os
import pathlib
import queue
import socket

import pytest
import spark_supplier
from spark_supplier import Rows
from spark_supplier.driver.hub import Hub
from spark_supplier.driver.sessions import session_of
from spark_supplier.node.hub import connect

from connect_server import connect_server
from supplier_session import rows, shared_memory

LIMIT_SECONDS = 60
ENCRYPTED = {
    "spark_authenticate": "true", "spark_authenticate_secret": "secret", "spark_network_crypto_enabled": "true",
}  # fmt: skip


@contextlib.contextmanager
def session(master, **settings):
    with connect_server(master, spark_supplier.jars(), **settings) as server:
        spark = spark_supplier.session(remote=server.remote)
        try:
            yield spark
        finally:
            spark.stop()


def address_of_hub(data):
    count = sum(len(batch["id"]) for batch in data)
    return count, os.environ["SUPPLY_HUB_ADDRESS"]


@pytest.mark.long
def test_ranks_of_an_encrypted_spark_use_tls_and_its_log_has_no_key(tmp_path):
    log = {"spark_eventLog_enabled": "true", "spark_eventLog_dir": str(tmp_path), "spark_eventLog_compress": "false"}
    with session("local-cluster[1,3,1024]", **ENCRYPTED, **log) as spark, shared_memory() as folder:
        count, address = spark_supplier.Supplier(1, folder=folder).run(
            address_of_hub, Rows(rows(spark, 100), uneven="keep")
        )
        assert count == 100 and address.endswith("/tls")
        received: queue.SimpleQueue[object] = queue.SimpleQueue()
        with contextlib.closing(Hub(session_of(spark), "logged", lambda _, message: received.put(message))) as hub:
            assert connect(hub.environment()).send("hello")
            assert received.get(timeout=LIMIT_SECONDS) == "hello"
            key = hub.environment()["SUPPLY_HUB_KEY"]
    logged = "".join(file.read_text() for file in pathlib.Path(tmp_path).rglob("*") if file.is_file())
    assert "hub-open" in logged and "logged" in logged
    assert key not in logged


def test_a_port_that_is_not_free_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"spark_supply_hub_port": taken.getsockname()[1], "spark_port_maxRetries": 0}
        with session("local[2]", **settings) as spark, pytest.raises(spark_supplier.RunError) as refused:
            Hub(session_of(spark), "run", lambda *_: None)
    assert "spark.supply.hub.port" in str(refused.value) and "\n" not in str(refused.value)
