"""Connections to the hub, in which the processes of a run meet: docs/design/hub.md has their bytes."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pickle
import secrets
import select
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spark_supplier.node.messages import Message

_BYTES = 1 << 16


class TlsConnection:
    """A socket with TLS. One thread may read while another one sends, which Python's SSLSocket does not allow.

    The certificate is not checked: both ends prove the run's key, and cover `certificate` by the proofs.
    Raises OSError if the other end does not take TLS.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        # Of _tls and its memory, never held while a thread waits.
        self._lock = threading.Lock()
        self._unread = b""
        self._shake_hands()
        #: SHA-256 of the other end's certificate.
        self.certificate = hashlib.sha256(self._tls.getpeercert(binary_form=True) or b"").digest()

    def recv_into(self, view: memoryview) -> int:
        """As of a socket."""
        while True:
            with self._lock, contextlib.suppress(ssl.SSLWantReadError):
                if self._unread:
                    view[:1], self._unread = self._unread, b""
                    return 1
                return int(self._tls.read(len(view), view))
            if not self._receive():
                return 0

    def has_come(self) -> bool:
        """Whether recv_into() returns at once."""
        while True:
            with self._lock, contextlib.suppress(ssl.SSLWantReadError):
                self._unread = self._unread or self._tls.read(1)
                return True
            if not select.select([self._socket], [], [], 0)[0]:
                return False
            if not self._receive():
                return True

    def sendall(self, data: bytes | memoryview) -> None:
        """As of a socket."""
        rest = memoryview(data)
        while rest:
            with self._lock:
                rest = rest[self._tls.write(rest) :]
                encrypted = self._outgoing.read()
            self._socket.sendall(encrypted)

    def fileno(self) -> int:
        return self._socket.fileno()

    def settimeout(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                self._flush()
            if not self._receive():
                raise ConnectionResetError("it has closed the connection")

    def _flush(self) -> None:
        self._socket.sendall(self._outgoing.read())

    def _receive(self) -> bool:
        """Waits for bytes of the socket; False: it is at its end."""
        encrypted = self._socket.recv(_BYTES)
        with self._lock:
            self._incoming.write(encrypted)
        return bool(encrypted)


ADDRESS, RUN, KEY = "SUPPLY_HUB_ADDRESS", "SUPPLY_HUB_RUN", "SUPPLY_HUB_KEY"

PEER, CLIENT, FILE = 0, 1, 2
# A piece: the last one of a message; one that others follow; the peer is gone; it has come.
LAST, MORE, GONE, COME = range(4)

_PIECE_BYTES = 1 << 20
_PIECE = struct.Struct("!BI")
_RANDOM_BYTES = 32
_MEET_SECONDS = 60
_NO_SUCH_RUN = 1

Connection: TypeAlias = "socket.socket | TlsConnection"


class HubError(OSError):
    """The hub does not know the run, or one side does not know its key."""


def meet(host: str, port: str, run: str, key: bytes, role: int) -> Connection:
    """A connection of that role. port: "35001", or "35001/tls". Raises OSError, also HubError, if there is none."""
    number, _, is_tls = port.partition("/")
    plain = socket.create_connection((host, int(number)), _MEET_SECONDS)
    connection: Connection = plain
    try:
        _keep_alive(plain)
        certificate = b""
        if is_tls:
            connection = secured = _secured(plain)
            certificate = secured.certificate
        own, name = secrets.token_bytes(_RANDOM_BYTES), run.encode()
        connection.sendall(b"SUPPLYH1" + struct.pack("!BH", role, len(name)) + name + own)
        status = read(connection, 1)[0]
        if status == _NO_SUCH_RUN:
            raise HubError(f"the run {run} has ended")
        if status:
            raise HubError("it answers as no hub, or takes connections with TLS only: see spark.supply.hub.tls")
        theirs = read(connection, _RANDOM_BYTES)
        connection.sendall(_proof(key, b"peer", theirs, own, certificate))
        if not hmac.compare_digest(
            read(connection, hashlib.sha256().digest_size), _proof(key, b"hub", own, theirs, certificate)
        ):
            raise HubError("the other end does not know the run's key")
        connection.settimeout(None)
    except EOFError:
        connection.close()
        raise HubError("the hub has refused the run's key") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_alive(connection: socket.socket) -> None:
    """As the hub: a node that says nothing is found within a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_NODELAY, 1),
        (socket.TCP_KEEPIDLE, 30),
        (socket.TCP_KEEPINTVL, 10),
        (socket.TCP_KEEPCNT, 3),
        (socket.TCP_USER_TIMEOUT, 60000),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _secured(connection: socket.socket) -> TlsConnection:
    try:
        return TlsConnection(connection)
    except OSError as error:
        raise HubError(f"there is no TLS with it: see spark.supply.hub.tls ({error})") from error


def _proof(key: bytes, who: bytes, *parts: bytes | bytearray) -> bytes:
    return hmac.new(key, b"".join((who, *parts)), hashlib.sha256).digest()


def read(connection: Connection, size: int) -> bytearray:
    """Raises EOFError at the end of the connection."""
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = connection.recv_into(rest)
        if not count:
            raise EOFError
        rest = rest[count:]
    return data


def read_piece(connection: Connection) -> tuple[int, bytearray]:
    """Its flag and its bytes."""
    flag, size = _PIECE.unpack(read(connection, _PIECE.size))
    return flag, read(connection, size)


def send_message(connection: Connection, message: Message, prefix: bytes = b"") -> None:
    """Sends it in pieces. prefix: of each piece."""
    for head, piece in _pieces(message, prefix):
        connection.sendall(head)
        connection.sendall(piece)


def pieces(message: Message, prefix: bytes, most: int) -> Iterator[bytes]:
    """The same in texts of whole pieces, each at most that long."""
    found = bytearray()
    for head, piece in _pieces(message, prefix):
        if found and len(found) + len(head) + len(piece) > most:
            yield bytes(found)
            found.clear()
        found += head
        found += piece
    yield bytes(found)


def _pieces(message: Message, prefix: bytes) -> Iterator[tuple[bytes, memoryview]]:
    return pieces_of(memoryview(pickle.dumps(message)), prefix)


def pieces_of(data: memoryview, prefix: bytes = b"") -> Iterator[tuple[bytes, memoryview]]:
    """Heads and bytes of the pieces of a message that is not empty."""
    for begin in range(0, len(data), _PIECE_BYTES):
        piece = data[begin : begin + _PIECE_BYTES]
        flag = LAST if begin + len(piece) == len(data) else MORE
        yield prefix + _PIECE.pack(flag, len(piece)), piece


class Driver:
    """A peer's connection: to the client, which drives the run. Any thread may send."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_gone = False

    @property
    def is_gone(self) -> bool:
        """Whether receive() or receive_now() has seen that the client is gone."""
        return self._is_gone

    def send(self, message: Message) -> bool:
        """False: the client is gone."""
        try:
            with self._lock:
                send_message(self._connection, message)
        except OSError:
            return False
        return True

    def receive(self) -> Message:
        """The next message; None when the client is gone."""
        data = bytearray()
        try:
            flag = MORE
            while flag == MORE:
                flag, piece = read_piece(self._connection)
                data += piece
        except (EOFError, OSError):
            self._is_gone = True
            return None
        return pickle.loads(data)

    def receive_now(self) -> Message:
        """The next message; None if none has come, or the client is gone."""
        return self.receive() if _has_come(self._connection) else None

    def keep_for_program(self) -> None:
        """The program that replaces this process keeps the connection open until it ends."""
        os.set_inheritable(self._connection.fileno(), True)

    def end(self) -> None:
        """Wakes the thread in receive()."""
        shut_down(self._connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _has_come(connection: Connection) -> bool:
    if isinstance(connection, TlsConnection):
        return connection.has_come()
    return bool(select.select([connection], [], [], 0)[0])


def output_of(run: str) -> str:
    """The run at the hub for the output of that run: if nobody takes it, other messages still come through."""
    return f"{run}-output"


def connect(environment: Mapping[str, str] = os.environ, for_output: bool = False) -> Driver:
    """Connects to the run that made this environment. Exits if that is gone."""
    run = environment[RUN]
    try:
        return Driver(peer(environment, output_of(run) if for_output else run))
    except OSError as error:
        sys.exit(f"supply: cannot reach the driver at {environment[ADDRESS]} ({error})")


def peer(environment: Mapping[str, str], run: str | None = None) -> Connection:
    """A connection for messages. Raises OSError."""
    return _connection(environment, run or environment[RUN], PEER)


def connect_file(environment: Mapping[str, str]) -> Connection:
    """A connection for one file of a checkpoint. Raises OSError."""
    return _connection(environment, environment[RUN], FILE)


def _connection(environment: Mapping[str, str], run: str, role: int) -> Connection:
    host, port = environment[ADDRESS].rsplit(":", 1)
    return meet(host, port, run, bytes.fromhex(environment[KEY]), role)


def shut_down(connection: Connection) -> None:
    """Ends it, and wakes the thread that reads it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
