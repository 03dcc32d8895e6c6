"""The hub and the executor of a rank elsewhere, written from docs/design/hub.md and PROTOCOL.md ("A pair over a
connection"), on a loopback address."""

import contextlib
import hashlib
import hmac
import os
import select
import socket
import ssl
import threading

from layout import CONSTANTS, SIZES, get, put, text
from task import HANG_SECONDS, Task

_PLACE, _LINK = 3, 4
_HEADER = SIZES["mapped_file_header"]


class Link:
    """A connection of the rank."""

    def __init__(self, connection):
        self._connection = connection
        self._connection.settimeout(HANG_SECONDS)

    def read(self, size):
        found = b""
        while len(found) < size:
            part = self._connection.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def write(self, data):
        self._connection.sendall(data)

    def has_more(self):
        """Whether a request has begun to come."""
        pending = isinstance(self._connection, ssl.SSLSocket) and self._connection.pending()
        return bool(pending or select.select([self._connection], [], [], 0)[0])

    def request(self):
        """Kind, released, acknowledged and payload of the next one."""
        head = self.read(SIZES["link_request"])
        kind, size, released, acknowledged = (
            get(head, "link_request", field) for field in ("kind", "payload_bytes", "released", "acknowledged")
        )
        return kind, released, acknowledged, self.read(size)

    @staticmethod
    def frame(kind, payload=b""):
        notice = bytearray(SIZES["link_notice"])
        put(notice, "link_notice", kind=CONSTANTS[kind], payload_bytes=len(payload))
        return bytes(notice) + payload

    def notice(self, kind, payload=b""):
        self.write(self.frame(kind, payload))

    def cut(self):
        self._connection.close()


class LinkServer:
    """Where ranks connect. It answers the place of the task, which is itself, and keeps the links for meet()."""

    def __init__(self, key="a key", certificate=None):
        """certificate: a file with a key and a certificate, for TLS."""
        self.key = key
        self._context, self._digest = None, b""
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate)
            pem = certificate.read_text()
            pem = pem[pem.index("-----BEGIN CERTIFICATE-----") :]
            self._digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.address = f"{'supplys' if certificate else 'supply'}://{self._place}/run"
        self.questions = []
        self._links = []
        self._is_met = threading.Condition()
        # What the hub answers in place of the place: its kind and a text.
        self.answer = None
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def meet(self):
        """The next link of the rank."""
        with self._is_met:
            assert self._is_met.wait_for(lambda: self._links, HANG_SECONDS), "no rank has connected"
            return self._links.pop(0)

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with contextlib.suppress(EOFError, ssl.SSLError):
                    self._take(connection)

    def _take(self, connection):
        if self._context is not None:
            connection = self._context.wrap_socket(connection, server_side=True)
        link = Link(connection)
        assert link.read(8) == b"SUPPLYH1"
        role, length = link.read(1)[0], int.from_bytes(link.read(2), "big")
        assert link.read(length) == b"run"
        theirs, own = link.read(32), os.urandom(32)
        link.write(b"\0" + own)
        assert link.read(32) == self._proof(b"peer", own, theirs), "another key"
        link.write(self._proof(b"hub", theirs, own))
        if role == _LINK:
            with self._is_met:
                self._links.append(link)
                self._is_met.notify()
            return
        assert role == _PLACE
        rank, ranks = (int.from_bytes(link.read(4), "big") for _ in range(2))
        data, _ = (link.read(int.from_bytes(link.read(2), "big")).decode() for _ in range(2))
        self.questions.append((rank, ranks, data))
        kind, answer = self.answer or (0, self._place + ("/tls" if self._context else ""))
        link.write(bytes([kind]) + len(answer).to_bytes(2, "big") + answer.encode())

    def _proof(self, who, one, other):
        return hmac.digest(hashlib.sha256(self.key.encode()).digest(), who + one + other + self._digest, "sha256")


class LinkedTask(Task):
    """The task of a rank that has connected. Its mirror is `memory`."""

    def __init__(self, server):
        self._server = server
        self.results = {}
        self.reason_of_stop = ""
        self._name, self._file_of_result = "", bytearray()
        self.memory: bytearray = bytearray()  # type: ignore[assignment]
        # After this number of bytes of the next notice the connection ends, and the rank must come again.
        self.cut_after = None
        self.accept()

    def accept(self):
        """Takes the rank, or takes it again, and sends what it does not have."""
        self._link = self._server.meet()
        kind, released, acknowledged, opened = self._link.request()
        assert kind == CONSTANTS["LINK_OPEN"]
        if not self.memory:
            header = bytearray(opened[:_HEADER])
            put(header, "mapped_file_header", schema_columns=0, schema_bytes=0, task_pid=os.getpid(), plan=0x77)
            self.memory = header.ljust(get(header, "mapped_file_header", "file_bytes"), b"\0")
        put(self.memory, "mapped_file_header", released=released, acknowledged=acknowledged)
        self._link.notice("LINK_ACCEPTED")
        if get(self.memory, "mapped_file_header", "schema_columns"):
            self._send_schema()
        for sequence in range(
            get(opened, "mapped_file_header", "published"), get(self.memory, "mapped_file_header", "published")
        ):
            self._link.notice("LINK_BLOCK", self._slot(sequence))

    def header(self, field):
        while self._link.has_more():
            self._take_request()
        return super().header(field)

    def write_schema(self, schema):
        super().write_schema(schema)
        self._send_schema()

    def confirm_end(self):
        super().confirm_end()
        self._send_header()
        self._link.notice("LINK_LEFT")

    def leave(self):
        self._link.cut()

    def take_all(self):
        """What the rank sends until it has left."""
        with contextlib.suppress(EOFError):
            while True:
                self._take_request()

    def _send_schema(self):
        size = get(self.memory, "mapped_file_header", "schema_columns") * SIZES["schema_entry"]
        start = CONSTANTS["SCHEMA_OFFSET"]
        self._link.notice("LINK_SCHEMA", bytes(self.memory[start : start + size]))
        self._send_header()

    def _send_header(self):
        self._link.notice("LINK_HEADER", bytes(self.memory[:_HEADER]))

    def _slot(self, sequence):
        """The block with that number."""
        slots, bytes_of_slot = (get(self.memory, "mapped_file_header", f"block_{name}") for name in ("count", "bytes"))
        start = get(self.memory, "mapped_file_header", "ring_offset") + sequence % slots * bytes_of_slot
        return bytes(self.memory[start : start + get(self.memory, "notification", "size", start)])

    def _notify(self, **fields):
        if fields["kind"] == CONSTANTS["NOTIFICATION_FAILURE"]:
            self._server.answer = 1, text(self.memory, "mapped_file_header", "task_failure")
            self._link.notice("LINK_LEFT")
            return
        self._link.write(Link.frame("LINK_BLOCK", self._slot(fields["sequence"]))[: self.cut_after])
        if self.cut_after is not None:
            self.cut_after = None
            self._link.cut()
            self.accept()

    def _take_request(self):
        kind, released, acknowledged, payload = self._link.request()
        put(self.memory, "mapped_file_header", released=released, acknowledged=acknowledged)
        if kind == CONSTANTS["LINK_STOP"]:
            self.reason_of_stop = payload.decode()
        elif kind == CONSTANTS["LINK_RESULT"]:
            self._name, self._file_of_result = payload.decode(), bytearray()
        elif kind == CONSTANTS["LINK_RESULT_BYTES"]:
            self._file_of_result += payload
        elif kind == CONSTANTS["LINK_RESULT_SEAL"]:
            self.results[self._name] = bytes(self._file_of_result)
            self._link.notice("LINK_KEPT")
        elif kind == CONSTANTS["LINK_RESULT_ABORT"]:
            self._link.notice("LINK_KEPT")
        else:
            assert kind == CONSTANTS["LINK_CREDIT"], kind
