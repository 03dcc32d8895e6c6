"""TLS over a connection to the hub (docs/design/hub.md)."""

from __future__ import annotations

import contextlib
import hashlib
import select
import socket
import ssl
import threading

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
