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
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge

from supply.ranks.messages import Message

_ADDRESS, KEY = "SUPPLY_CONTROL_ADDRESS", "SUPPLY_CONTROL_KEY"


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
    """The driver's end. `receive` gets every peer and its messages, on a thread for each peer, and None at its end."""

    def __init__(self, host: str, receive: Callable[[Peer, Message], None]) -> None:
        self._key = secrets.token_bytes(32)
        # All ranks connect at the same time.
        self._listener = socket.create_server((host, 0), backlog=1024)
        self._receive = receive
        self._connected: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, name="supply-control", daemon=True)
        self._accepting.start()

    def environment(self, host: str) -> dict[str, str]:
        """What connect() needs in the environment of another process. host: the driver's name there."""
        port = self._listener.getsockname()[1]
        return {_ADDRESS: f"{host}:{port}", KEY: self._key.hex()}

    def close(self) -> None:
        """Ends the listener and every connection."""
        # close() alone does not wake the thread that waits.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for connected in list(self._connected):
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except ConnectionError:
                continue
            except OSError:
                return
            self._connected.add(connected)
            threading.Thread(target=self._serve, args=(connected,), name="supply-control", daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        connection = Connection(os.dup(connected.fileno()))
        peer = Peer(connection)
        try:
            # Here and not in _accept(): a stranger that says nothing, or anything, must not keep ranks waiting.
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            while (message := peer.receive()) is not None:
                self._receive(peer, message)
            self._receive(peer, None)
        except (AuthenticationError, AssertionError, EOFError, OSError):
            # A stranger.
            pass
        finally:
            self._connected.discard(connected)
            connected.close()
            peer.close()


def connect(environment: Mapping[str, str] = os.environ) -> Peer:
    """Connects to the driver that made this environment. Exits if that is gone."""
    host, port = environment[_ADDRESS].rsplit(":", 1)
    try:
        return Peer(Client((host, int(port)), authkey=bytes.fromhex(environment[KEY])))
    except (AuthenticationError, EOFError, OSError) as error:
        sys.exit(f"supply: cannot reach the driver at {environment[_ADDRESS]} ({error!r})")
