"""Control connections: who gets in, and how they end."""

import contextlib
import os
import pathlib
import pickle
import queue
import socket
import struct
import threading
import time

import pytest
from supply.errors import RunError
from supply.ranks.control import Control, connect, require_files

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


class Touching:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return pathlib.Path.touch, (self._path,)


def test_nothing_is_unpickled_before_the_key_is_proved(control, received, tmp_path):
    touched = tmp_path / "touched"
    message = pickle.dumps(Touching(touched))
    pickle.loads(message)
    touched.unlink()
    with stranger(control.environment(HOST)) as connected:
        connected.sendall(2 * (struct.pack("!i", len(message)) + message))
        wait_for_end(connected)
    assert received.empty() and not touched.exists()


def test_a_silent_stranger_is_dropped_and_a_silent_peer_is_not(received):
    control = Control(HOST, lambda peer, message: received.put(message), stranger_seconds=1)
    with contextlib.closing(control):
        peer = connect(control.environment(HOST))
        with stranger(control.environment(HOST)) as connected:
            wait_for_end(connected)
        peer.send("hello")
        assert received.get(timeout=LIMIT_SECONDS) == "hello"


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


def test_a_connection_takes_one_file(control, received):
    environment = control.environment(HOST)
    begin = len(os.listdir("/proc/self/fd"))
    peers = [connect(environment) for _ in range(5)]
    for peer in peers:
        peer.send("hello")
        assert received.get(timeout=LIMIT_SECONDS) == "hello"
    # Both ends are in this process.
    assert len(os.listdir("/proc/self/fd")) == begin + 2 * len(peers)
    for peer in peers:
        peer.close()


def test_ranks_are_accepted_again_when_files_are_free(control, received, limit_files, caplog):
    environment = control.environment(HOST)
    unused = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    strangers = [socket.socket() for _ in range(4)]
    limit_files(2)
    host, port = environment["SUPPLY_CONTROL_ADDRESS"].split(":")
    for connected in strangers:
        connected.connect((host, int(port)))
    end = time.monotonic() + LIMIT_SECONDS
    while "cannot accept the connection" not in caplog.text:
        assert time.monotonic() < end
        time.sleep(0.01)
    for file in unused:
        os.close(file)
    peer = connect(environment)
    peer.send("hello")
    assert received.get(timeout=LIMIT_SECONDS) == "hello"
    peer.close()
    for connected in strangers:
        connected.close()


def test_too_few_files(limit_files):
    limit_files(100)
    require_files(20)
    with pytest.raises(RunError, match="the driver needs .* open files for this number of ranks.*ulimit -n"):
        require_files(200)
