"""The hub, from both of its ends in Python: messages, strangers, ends."""

import base64
import contextlib
import pickle
import queue
import struct
import threading
import time

import pytest

from supplier_session import prepare_environment, session_fixture

prepare_environment()
pytest.importorskip("pyspark")

from supply.ranks.hub import connect  # noqa: E402
from supply.spark.hub import Hub  # noqa: E402
from supply.spark.hub_key import KeyAgreement, proof  # noqa: E402
from supply.spark.sessions import session_of  # noqa: E402

LIMIT_SECONDS = 30
spark = session_fixture(1)


@pytest.fixture
def received():
    return queue.SimpleQueue()


@pytest.fixture
def hub(spark, received, request):
    with contextlib.closing(Hub(session_of(spark), request.node.name, lambda *each: received.put(each))) as opened:
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

    def call(verb, **options):
        options = {"hub": verb, "hub-run": run, **{name.replace("_", "-"): value for name, value in options.items()}}
        return spark.read.format("supply").options(**options).load().first().answer

    agreement = KeyAgreement()
    host, port, _, theirs = call("open", hub_public=agreement.public).decode().split(" ")
    key = agreement.key(theirs)
    driver = connect({"SUPPLY_HUB_ADDRESS": f"{host}:{port}", "SUPPLY_HUB_RUN": run, "SUPPLY_HUB_KEY": key.hex()})
    assert call("poll", millis=60000, hub_proof=proof(key, "poll", run))
    message = pickle.dumps("hello")
    text = base64.b64encode(struct.pack("!IBI", 1, 0, len(message)) + message).decode()
    call("send", number=1, bytes=text, hub_proof=proof(key, "send", run, 1, text))
    assert driver.receive() == "hello"
    call("close", hub_proof=proof(key, "close", run))
    assert driver.receive() is None
