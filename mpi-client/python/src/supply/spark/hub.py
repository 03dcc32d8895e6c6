"""The client's end of a run at the hub of the driver's JVM (docs/design/hub.md)."""

from __future__ import annotations

import contextlib
import json
import pickle
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from supply.errors import RunError
from supply.ranks import hub
from supply.ranks.messages import Imbalance, Message

_NUMBER = struct.Struct("!I")
# The hub itself has this number. It has no pickles.
_JVM = 0


class Peer:
    """A process at the hub. Any thread may send."""

    def __init__(self, channel: _Channel, number: int) -> None:
        self._channel = channel
        self._number = number
        self.unread = bytearray()

    def send(self, message: Message) -> bool:
        """False: the hub is gone."""
        return self._channel.send(self._number, message)


class _Channel:
    """The client's connection of one run at the hub. receive: as of Hub."""

    def __init__(self, connection: socket.socket, receive: Callable[[Peer, Message], None]) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._receive = receive
        self._peers: dict[int, Peer] = {}
        self._thread = threading.Thread(target=self._read, name="supply-hub", daemon=True)
        self._thread.start()

    def send(self, number: int, message: Message) -> bool:
        try:
            with self._lock:
                hub.send_message(self._connection, message, _NUMBER.pack(number))
        except OSError:
            return False
        return True

    def close(self) -> None:
        hub.shut_down(self._connection)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._connection.close()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                (number,) = _NUMBER.unpack(hub.read(self._connection, _NUMBER.size))
                flag, piece = hub.read_piece(self._connection)
                self._take(number, flag, piece)
        # Nobody can be reached any more.
        for number in list(self._peers):
            self._take(number, hub.GONE, bytearray())

    def _take(self, number: int, flag: int, piece: bytearray) -> None:
        if number == _JVM:
            self._receive(Peer(self, number), Imbalance(**json.loads(piece)))
            return
        peer = self._peers.setdefault(number, Peer(self, number))
        if flag == hub.GONE:
            del self._peers[number]
            self._receive(peer, None)
            return
        peer.unread += piece
        if flag == hub.LAST:
            message, peer.unread = pickle.loads(peer.unread), bytearray()
            self._receive(peer, message)


class Hub:
    """A run. `receive` gets every peer and its messages, and None at its end: output on a thread of its own.

    Raises RunError if the hub does not start.
    """

    def __init__(self, context: Any, run: str, receive: Callable[[Peer, Message], None]) -> None:
        self._run = run
        self._key = secrets.token_bytes(32)
        self._hubs = context._jvm.supply.api.Hubs
        self._channels: list[_Channel] = []
        try:
            for name in (run, hub.output_of(run)):
                self.host, port, here = self._hubs.open(context._jsc.sc(), name, self._key).split(" ")
                self._port = int(port)
                connection = hub.meet(here, self._port, name, self._key, hub.CLIENT)
                self._channels.append(_Channel(connection, receive))
        except OSError as error:
            self.close()
            raise RunError(f"cannot reach the hub of the driver's JVM ({error})") from error
        except BaseException:
            self.close()
            raise

    def environment(self) -> dict[str, str]:
        """What connect() needs in the environment of another process."""
        return {hub.ADDRESS: f"{self.host}:{self._port}", hub.RUN: self._run, hub.KEY: self._key.hex()}

    def close(self) -> None:
        """Ends all connections of the run."""
        for channel in self._channels:
            channel.close()
