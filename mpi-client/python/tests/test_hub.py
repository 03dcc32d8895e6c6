"""The hub, from both of its ends in Python: messages, strangers, ends."""

import base64
import contextlib
import json
import pathlib
import pickle
import queue
import socket
import ssl
import struct
import threading
import time

import pytest
from spark_supplier.driver.hub import Hub
from spark_supplier.driver.hub_key import KeyAgreement, proof
from spark_supplier.driver.sessions import session_of
from spark_supplier.errors import RunError
from spark_supplier.node.hub import TlsConnection, connect

from supplier_session import only_classic, over_connect, session_fixture

LIMIT_SECONDS = 30
TLS = "spark.supply.hub.tls"
spark = session_fixture(1)


@pytest.fixture
def received():
    return queue.SimpleQueue()


@pytest.fixture(params=["plain", "tls"])
def tls(spark, request):
    """Whether the hubs of this test take connections with TLS."""
    if over_connect():
        if request.param == "tls":
            pytest.skip("only of Spark Classic: a server's settings are there when it starts")
        yield False
        return
    # A user sets it before Spark starts. The hub reads it when the first run opens it.
    spark.sparkContext._jsc.sc().conf().set(TLS, str(request.param == "tls").lower())
    yield request.param == "tls"
    spark.sparkContext._jsc.sc().conf().remove(TLS)


@pytest.fixture
def hub(spark, tls, received, request):
    # The hub of the test before ends once it has seen that test's client go. Until then it takes this run, too.
    until = time.monotonic() + LIMIT_SECONDS
    while True:
        opened = Hub(session_of(spark), request.node.name, lambda *each: received.put(each))
        is_tls = opened.environment()["SUPPLY_HUB_ADDRESS"].endswith("/tls")
        if is_tls == tls or time.monotonic() > until:
            break
        opened.close()
        time.sleep(0.05)
    with contextlib.closing(opened):
        assert is_tls == tls
        yield opened


def test_messages_both_ways_and_the_end(hub, received):
    driver = connect(hub.environment())
    # Of several pieces.
    message = {"bytes": bytes(range(256)) * 20_000, "text": "hello"}
    driver.send(message)
    peer, got = received.get(timeout=LIMIT_SECONDS)
    assert got == message
    assert driver.receive_now() is None and not driver.is_gone
    peer.send(message)
    assert driver.receive() == message
    driver.close()
    assert received.get(timeout=LIMIT_SECONDS) == (peer, None)


def test_peers_have_one_object_each(hub, received):
    drivers = [connect(hub.environment()) for _ in range(3)]
    for number, driver in enumerate(drivers):
        driver.send(number)
    peers = {got: peer for peer, got in (received.get(timeout=LIMIT_SECONDS) for _ in drivers)}
    for number, peer in peers.items():
        peer.send(f"to {number}")
    assert [driver.receive() for driver in drivers] == ["to 0", "to 1", "to 2"]


def test_one_thread_reads_while_another_one_sends(hub, received):
    driver = connect(hub.environment())
    driver.send("begin")
    peer, _ = received.get(timeout=LIMIT_SECONDS)
    count, text = 300, "x" * 50_000
    answers: list[object] = []
    reading = threading.Thread(target=lambda: answers.extend(driver.receive() for _ in range(count)))
    reading.start()
    sending = threading.Thread(target=lambda: [peer.send((i, text)) for i in range(count)])
    sending.start()
    for i in range(count):
        driver.send((i, text))
    assert [received.get(timeout=LIMIT_SECONDS)[1] for _ in range(count)] == [(i, text) for i in range(count)]
    for thread in (reading, sending):
        thread.join(LIMIT_SECONDS)
    assert answers == [(i, text) for i in range(count)]


def test_a_message_that_has_come_is_there_at_once(hub, received):
    driver = connect(hub.environment())
    driver.send("begin")
    peer, _ = received.get(timeout=LIMIT_SECONDS)
    peer.send("one")
    peer.send("two")
    got: list[object] = []
    end = time.monotonic() + LIMIT_SECONDS
    while len(got) < 2 and time.monotonic() < end:
        message = driver.receive_now()
        got += [message] if message else []
    assert got == ["one", "two"]
    hub.close()
    while not driver.is_gone and time.monotonic() < end:
        assert driver.receive_now() is None
    assert driver.is_gone


def test_a_side_without_tls_is_refused_at_once(hub, tls, received):
    address = hub.environment()["SUPPLY_HUB_ADDRESS"]
    other = address.replace("/tls", "") if tls else f"{address}/tls"
    begin = time.monotonic()
    with pytest.raises(SystemExit, match=f"cannot reach the driver at {other} .* {TLS}") as refused:
        connect({**hub.environment(), "SUPPLY_HUB_ADDRESS": other})
    assert "\n" not in str(refused.value)
    assert time.monotonic() - begin < LIMIT_SECONDS
    assert received.empty()


@pytest.mark.parametrize("tls", ["tls"], indirect=True)
def test_somebody_in_between_is_refused(hub, received):
    """They have another certificate, and pass on all that both ends say."""
    host, port = hub.environment()["SUPPLY_HUB_ADDRESS"].split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pathlib.Path(__file__).parent / "other_certificate.pem")

    def stand_between():
        with contextlib.suppress(OSError), server.accept()[0] as plain, context.wrap_socket(plain, True) as to_peer:
            to_hub = TlsConnection(socket.create_connection((host, int(port.partition("/")[0]))))
            to_hub.sendall(to_peer.recv(1024))
            answer = bytearray(33)
            to_peer.sendall(answer[: to_hub.recv_into(memoryview(answer))])
            to_hub.sendall(to_peer.recv(1024))
            to_peer.sendall(answer[: to_hub.recv_into(memoryview(answer))])

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=stand_between, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}/tls"
        with pytest.raises(SystemExit, match="refused the run's key"):
            connect({**hub.environment(), "SUPPLY_HUB_ADDRESS": address})
    assert received.empty()


def test_output_that_nobody_takes_holds_no_other_message(spark, request):
    others: queue.SimpleQueue[str] = queue.SimpleQueue()
    paused, arrived = threading.Event(), threading.Event()

    def receive(_, message):
        if message == "line":
            arrived.set()
            paused.wait(LIMIT_SECONDS)
        elif message:
            others.put(message)

    with contextlib.closing(Hub(session_of(spark), request.node.name, receive)) as hub:
        connect(hub.environment(), for_output=True).send("line")
        assert arrived.wait(LIMIT_SECONDS)
        connect(hub.environment()).send("result")
        assert others.get(timeout=LIMIT_SECONDS) == "result"
        paused.set()


@only_classic("a server's settings are there when it starts")
def test_a_port_that_is_not_free_is_one_line(spark, request):
    conf = spark.sparkContext._jsc.sc().conf()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        conf.set("spark.supply.hub.port", str(taken.getsockname()[1]))
        conf.set("spark.port.maxRetries", "0")
        try:
            with pytest.raises(RunError, match="cannot listen at .* spark.supply.hub.port") as refused:
                Hub(session_of(spark), request.node.name, lambda *_: None)
        finally:
            conf.remove("spark.supply.hub.port")
            conf.remove("spark.port.maxRetries")
    assert "\n" not in str(refused.value)


def test_another_key_is_refused(hub, received):
    environment = {**hub.environment(), "SUPPLY_HUB_KEY": "00" * 32}
    with pytest.raises(SystemExit, match="cannot reach the driver at .* refused the run's key"):
        connect(environment)
    assert received.empty()


def test_a_run_that_has_ended(spark, received, request):
    hub = Hub(session_of(spark), request.node.name, lambda *each: received.put(each))
    driver = connect(hub.environment())
    with contextlib.closing(Hub(session_of(spark), "another run", lambda *_: None)):
        hub.close()
        assert driver.receive() is None and driver.is_gone
        # While the hub ends the run, it may still let one in, and ends its connection.
        said, end = "", time.monotonic() + LIMIT_SECONDS
        while "has ended" not in said and time.monotonic() < end:
            try:
                assert connect(hub.environment()).receive() is None
            except SystemExit as refused:
                said = str(refused)
        assert f"the run {request.node.name} has ended" in said


def test_client_and_jvm_agree_on_a_key_that_no_option_has(spark, request):
    run = request.node.name
    agreement = KeyAgreement()

    def call(name, **words):
        text = json.dumps({"run": run, **words})
        options = {"call": name, "json": text, "proof": proof(agreement.key, name, text)}
        return spark.read.format("supply").options(**options).load().first().answer

    opened = json.loads(call("hub-open", public=agreement.public))
    host, port = opened["host"], opened["port"]
    agreement.agree(opened["public"])
    key = agreement.key.hex()
    driver = connect({"SUPPLY_HUB_ADDRESS": f"{host}:{port}", "SUPPLY_HUB_RUN": run, "SUPPLY_HUB_KEY": key})
    assert call("hub-poll", millis=60000)
    message = pickle.dumps("hello")
    text = base64.b64encode(struct.pack("!IBI", 1, 0, len(message)) + message).decode()
    call("hub-send", number=1, bytes=text)
    assert driver.receive() == "hello"
    call("hub-close")
    assert driver.receive() is None
