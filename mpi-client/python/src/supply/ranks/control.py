"""Control connections: between the driver, and node processes and ranks.

multiprocessing.connection authenticates both ends with a random key before anything is unpickled.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge

from supply.ranks.messages import Message

_ADDRESS, _KEY = "SUPPLY_CONTROL_ADDRESS", "SUPPLY_CONTROL_KEY"


class Peer:
    """One end of a control connection. Any thread may send."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

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
            return None

    def close(self) -> None:
        self._connection.close()


class Control:
    """The driver's end. `receive` gets every peer and its messages, on a thread for each peer, and None at its end."""

    def __init__(self, host: str, receive: Callable[[Peer, Message], None]) -> None:
        self._key = secrets.token_bytes(32)
        # All ranks connect at the same time.
        self._listener = Listener((host, 0), backlog=1024)
        self._receive = receive
        self._closed = False
        threading.Thread(target=self._accept, name="supply-control", daemon=True).start()

    def environment(self, host: str) -> dict[str, str]:
        """What connect() needs in the environment of another process. host: the driver's name there."""
        port = self._listener.address[1]
        return {_ADDRESS: f"{host}:{port}", _KEY: self._key.hex()}

    def close(self) -> None:
        self._closed = True
        # close() alone does not wake the thread, which would keep the port.
        with contextlib.suppress(OSError), socket.create_connection(self._listener.address, timeout=1):
            self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self._listener.accept()
                if self._closed:
                    return
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """Authenticates a connection, which may take its time, and receives its messages."""
        with connection:
            try:
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
            except (AuthenticationError, EOFError, OSError):
                return
            peer = Peer(connection)
            while (message := peer.receive()) is not None:
                self._receive(peer, message)
            self._receive(peer, None)


def connect(environment: Mapping[str, str] = os.environ) -> Peer:
    """Connects to the driver that made this environment. Exits if that is gone."""
    host, port = environment[_ADDRESS].rsplit(":", 1)
    try:
        return Peer(Client((host, int(port)), authkey=bytes.fromhex(environment[_KEY])))
    except (AuthenticationError, OSError, EOFError) as error:
        sys.exit(f"supply: cannot reach the driver at {environment[_ADDRESS]} ({error!r})")


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])
