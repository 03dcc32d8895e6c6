"""The client's end of a run at the hub of the driver's JVM (docs/design/hub.md)."""

from __future__ import annotations

import abc
import base64
import contextlib
import io
import json
import logging
import pickle
import struct
import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_supplier.driver.hub_key import KeyAgreement
from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RunError, RunTimeoutError
from spark_supplier.node import hub
from spark_supplier.node.messages import Imbalance, Message, SlotsWanted

_NUMBER = struct.Struct("!I")
# A piece in the answer of a poll: its number, the peer's, flag and size.
_NUMBERED = struct.Struct("!QIBI")
_MOST_SENT = 8 << 20
_POLL_MILLIS = 30000
# The hub itself has this number. It has no pickles.
_JVM = 0

_log = logging.getLogger("spark_supplier")


class Peer:
    """A process at the hub. Any thread may send."""

    def __init__(self, channel: _Channel, number: int) -> None:
        self._channel = channel
        self._number = number
        self.unread = bytearray()

    def send(self, message: Message) -> bool:
        """False: the hub is gone."""
        return self._channel.send(self._number, message)


class _Channel(abc.ABC):
    """The client's way to one run at the hub. receive: as of Hub. Begin it with start()."""

    def __init__(self, receive: Callable[[Peer, Message], None]) -> None:
        self._receive = receive
        self._peers: dict[int, Peer] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="supply-hub", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @abc.abstractmethod
    def send(self, number: int, message: Message) -> bool:
        """False: the hub is gone."""

    def close(self) -> None:
        self._end()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @abc.abstractmethod
    def _end(self) -> None:
        """Ends the run, and so _read()."""

    @abc.abstractmethod
    def _read(self) -> None:
        """Takes pieces until the end of the run."""

    def _run(self) -> None:
        self._read()
        # Nobody can be reached any more.
        for number in list(self._peers):
            self._take(number, hub.GONE, bytearray())

    def _take(self, number: int, flag: int, piece: bytearray) -> None:
        if number == _JVM:
            told = json.loads(piece)
            if "failure" in told:
                self._receive(Peer(self, number), RunError(told["failure"]))
                return
            self._receive(Peer(self, number), (Imbalance if "warning" in told else SlotsWanted)(**told))
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


class _Connection(_Channel):
    """Of Spark Classic."""

    def __init__(self, connection: hub.Connection, receive: Callable[[Peer, Message], None]) -> None:
        super().__init__(receive)
        self._connection = connection

    def send(self, number: int, message: Message) -> bool:
        try:
            with self._lock:
                hub.send_message(self._connection, message, _NUMBER.pack(number))
        except OSError:
            return False
        return True

    def close(self) -> None:
        super().close()
        self._connection.close()

    def _end(self) -> None:
        hub.shut_down(self._connection)

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                (number,) = _NUMBER.unpack(hub.read(self._connection, _NUMBER.size))
                self._take(number, *hub.read_piece(self._connection))


class _Calls(_Channel):
    """Of Spark Connect: by calls, which can be repeated."""

    def __init__(self, session: Session, run: str, receive: Callable[[Peer, Message], None]) -> None:
        super().__init__(receive)
        self._session = session
        self._run_name = run
        self._sent = 0
        self._has_ended = False
        # Whether it is not known what the hub has had.
        self._has_lost = False

    def send(self, number: int, message: Message) -> bool:
        with self._lock:
            if self._has_lost:
                return False
            try:
                for pieces in hub.pieces(message, _NUMBER.pack(number), _MOST_SENT):
                    text = base64.b64encode(pieces).decode()
                    self._call("hub-send", number=self._sent + 1, bytes=text)
                    self._sent += 1
            except Exception:
                # The hub may have had it, or a part of it.
                self._has_lost = True
                _log.debug("the hub does not take a message", exc_info=True)
                return False
        return True

    def _end(self) -> None:
        self._has_ended = True
        with contextlib.suppress(Exception):
            self._call("hub-close")

    def _read(self) -> None:
        last = 0
        while not self._has_ended:
            try:
                answer = io.BytesIO(self._call("hub-poll", _POLL_MILLIS / 1000, after=last, millis=_POLL_MILLIS))
            except RunTimeoutError as error:
                self._receive(Peer(self, _JVM), error)
                return
            except Exception as error:
                if not self._has_ended:
                    text = self._session.failure(error).text
                    self._receive(Peer(self, _JVM), RunError(f"the hub does not answer: {text}"))
                return
            while head := answer.read(_NUMBERED.size):
                last, number, flag, size = _NUMBERED.unpack(head)
                self._take(number, flag, bytearray(answer.read(size)))

    def _call(self, name: str, seconds: float = 0, **words: Any) -> bytes:
        return self._session.call(name, {"run": self._run_name, **words}, seconds)


class Hub:
    """A run. `receive` gets every peer and its messages, and None at its end: output on a thread of its own.

    Raises RunError if the hub does not start.
    """

    def __init__(self, session: Session, run: str, receive: Callable[[Peer, Message], None]) -> None:
        self._run = run
        self._agreement = KeyAgreement()
        self._channels: list[_Channel] = []
        try:
            for name in (run, hub.output_of(run)):
                self._channels.append(self._channel(session, name, receive))
                self._channels[-1].start()
        except OSError as error:
            self.close()
            raise RunError(f"cannot reach the hub of the driver's JVM ({error})") from error
        except (Py4JError, PySparkException) as error:
            self.close()
            raise RunError(session.failure(error).text) from error
        except BaseException:
            self.close()
            raise

    def _channel(self, session: Session, name: str, receive: Callable[[Peer, Message], None]) -> _Channel:
        opened = session.ask("hub-open", run=name, public=self._agreement.public)
        self._agreement.agree(opened["public"])
        session.keys[name] = self._agreement
        self.host, self._port = opened["host"], opened["port"]
        if session.is_connect:
            return _Calls(session, name, receive)
        return _Connection(hub.meet(opened["here"], self._port, name, self._agreement.key, hub.CLIENT), receive)

    def environment(self) -> dict[str, str]:
        """What connect() needs in the environment of another process."""
        return {hub.ADDRESS: f"{self.host}:{self._port}", hub.RUN: self._run, hub.KEY: self._agreement.key.hex()}

    def close(self) -> None:
        """Ends all connections of the run."""
        for channel in self._channels:
            channel.close()
