"""Control connections: between the driver, and node processes and ranks.

multiprocessing.connection authenticates both ends with a random key before anything is unpickled.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

from supply.errors import RunError
from supply.ranks.environment import plain_host
from supply.ranks.messages import Message

_ADDRESS, KEY = "SUPPLY_CONTROL_ADDRESS", "SUPPLY_CONTROL_KEY"
# A peer with the key answers at once. A stranger must not keep a thread and a descriptor of the driver.
_STRANGER_SECONDS = 30

_RETRY_SECONDS = 1

_log = logging.getLogger("supply.spark")


class Peer:
    """One end of a control connection. Any thread may send."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_gone = False

    @property
    def is_gone(self) -> bool:
        """Whether receive() or receive_now() has seen that the other end is gone."""
        return self._is_gone

    def send(self, message: Message) -> bool:
        """False: the other end is gone."""
        try:
            with self._lock:
                self._connection.send(message)
        except OSError:
            return False
        return True

    def receive(self) -> Message:
        """The next message; None when the other end is gone."""
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            self._is_gone = True
            return None

    def receive_now(self) -> Message:
        """The next message; None if none has come, or the other end is gone."""
        try:
            return self.receive() if self._connection.poll() else None
        except OSError:
            return None

    def keep_for_program(self) -> None:
        """The program that replaces this process keeps the connection open until it ends."""
        os.set_inheritable(self._connection.fileno(), True)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class Control:
    """The driver's end. `receive` gets every peer and its messages, on a thread for each peer, and None at its end.

    stranger_seconds: how long a program that connects may be silent until it has proved that it knows the key.
    """

    def __init__(
        self, host: str, receive: Callable[[Peer, Message], None], stranger_seconds: int = _STRANGER_SECONDS
    ) -> None:
        self._stranger_seconds = stranger_seconds
        self._key = secrets.token_bytes(32)
        # All ranks connect at the same time.
        self._listener = socket.create_server((plain_host(host), 0), family=_family(host), backlog=1024)
        self._receive = receive
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._is_closing = False
        self._accepting = threading.Thread(target=self._accept, name="supply-control", daemon=True)
        self._accepting.start()

    def environment(self, host: str) -> dict[str, str]:
        """What connect() needs in the environment of another process. host: the driver's name there."""
        port = self._listener.getsockname()[1]
        return {_ADDRESS: f"{host}:{port}", KEY: self._key.hex()}

    def close(self) -> None:
        """Ends the listener and every connection."""
        self._is_closing = True
        # close() alone does not wake the thread that waits.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                _shut_down(connection)

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                connected, _ = self._listener.accept()
            except ConnectionError:
                continue
            except OSError as error:
                if not self._is_closing:
                    _log.warning("the driver cannot accept the connection of a rank: %s (ulimit -n?)", error.strerror)
                    # It remains in the backlog.
                    time.sleep(_RETRY_SECONDS)
                continue
            connection = Connection(connected.detach())
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="supply-control", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        peer = Peer(connection)
        try:
            # Here and not in _accept(): a stranger that says nothing, or anything, must not keep ranks waiting.
            _limit_silence(connection, self._stranger_seconds)
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            _limit_silence(connection, 0)
            while (message := peer.receive()) is not None:
                self._receive(peer, message)
            self._receive(peer, None)
        except (AuthenticationError, AssertionError, EOFError, OSError):
            # A stranger.
            pass
        finally:
            # close() must not shut down another file with the same descriptor.
            with self._lock:
                self._connections.discard(connection)
            peer.close()


def _family(host: str) -> socket.AddressFamily:
    """IPv4 if the host has such an address."""
    families = [found[0] for found in socket.getaddrinfo(plain_host(host), 0, type=socket.SOCK_STREAM)]
    return socket.AF_INET if socket.AF_INET in families else families[0]


def require_files(connections: int) -> None:
    """Raises RunError if the driver may not open as many files more."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = len(os.listdir("/proc/self/fd")) + connections
    if limit < needed:
        raise RunError(
            f"the driver needs {needed} open files for this number of ranks, and may open {limit}: raise the limit "
            "(ulimit -n) before you start it"
        )


@contextlib.contextmanager
def _socket(connection: Connection) -> Iterator[socket.socket]:
    """The connection's own descriptor: a duplicate fails when the driver may open no file more."""
    connected = socket.socket(fileno=connection.fileno())
    try:
        yield connected
    finally:
        connected.detach()


def _shut_down(connection: Connection) -> None:
    """Ends it, and wakes the thread that receives from it."""
    with contextlib.suppress(OSError), _socket(connection) as connected:
        connected.shutdown(socket.SHUT_RDWR)


def _limit_silence(connection: Connection, seconds: int) -> None:
    """Reading fails when nothing has come for this time. 0: it waits. (settimeout() would not reach Connection.)"""
    with _socket(connection) as connected:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def connect(environment: Mapping[str, str] = os.environ) -> Peer:
    """Connects to the driver that made this environment. Exits if that is gone."""
    host, port = environment[_ADDRESS].rsplit(":", 1)
    try:
        connection = Connection(socket.create_connection((plain_host(host), int(port))).detach())
        answer_challenge(connection, bytes.fromhex(environment[KEY]))
        deliver_challenge(connection, bytes.fromhex(environment[KEY]))
        return Peer(connection)
    except (AuthenticationError, EOFError, OSError) as error:
        sys.exit(f"supply: cannot reach the driver at {environment[_ADDRESS]} ({error!r})")
