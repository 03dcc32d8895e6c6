"""Control connections: who gets in, and how they end."""

import contextlib
import queue
import socket
import threading

import pytest
from supply.ranks.control import Control, connect

LIMIT_SECONDS = 30
HOST = "127.0.0.1"


@pytest.fixture
def received():
    return queue.SimpleQueue()


@pytest.fixture
def control(received):
    opened = Control(HOST, lambda peer, message: received.put(message))
    yield opened
    opened.close()


def stranger(environment):
    host, port = environment["SUPPLY_CONTROL_ADDRESS"].split(":")
    return socket.create_connection((host, int(port)), LIMIT_SECONDS)


def wait_for_end(connected):
    with contextlib.suppress(ConnectionResetError):
        while connected.recv(4096):
            pass


def test_strangers_keep_nobody_out(control, received):
    environment = control.environment(HOST)
    with stranger(environment), stranger(environment) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_for_end(browser)
        threading.Thread(target=lambda: connect(environment).send("hello"), daemon=True).start()
        assert received.get(timeout=LIMIT_SECONDS) == "hello"


def test_another_key_is_refused(control, received):
    environment = {**control.environment(HOST), "SUPPLY_CONTROL_KEY": "00" * 32}
    with pytest.raises(SystemExit, match="cannot reach the driver"):
        connect(environment)
    assert received.empty()


def test_close_ends_every_connection_and_thread(received):
    control = Control(HOST, lambda peer, message: received.put(message))
    environment = control.environment(HOST)
    peer = connect(environment)
    peer.send("hello")
    assert received.get(timeout=LIMIT_SECONDS) == "hello"
    with stranger(environment) as silent:
        control.close()
        assert peer.receive() is None
        wait_for_end(silent)
    for thread in threading.enumerate():
        if thread.name == "supply-control":
            thread.join(LIMIT_SECONDS)
            assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        stranger(environment)
