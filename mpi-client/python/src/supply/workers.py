"""The server from which the workers of a DataLoader get batches. It runs in the process that has the pair."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

from supply.equal_steps import Step
from supply.errors import SupplyError
from supply.worker_batches import WorkerBatches, packed

# How long the server may be out of files. Then no worker gets through to it any more.
_RETRY_SECONDS = 30
_RETRY_PAUSE_SECONDS = 0.2

_CLOSED = "the data set is closed"

_log = logging.getLogger("supply.torch")

_all: weakref.WeakSet[Workers] = weakref.WeakSet()


def _listen_before_fork() -> None:
    for workers in list(_all):
        workers.listen()


def _abandon_in_child() -> None:
    for workers in list(_all):
        workers.abandon_in_child()


# A child needs a listening parent. And its copies of the sockets would make a dead rank look alive to other workers.
os.register_at_fork(before=_listen_before_fork, after_in_child=_abandon_in_child)


class Hello(NamedTuple):
    """What a worker says first."""

    # The same for all workers of an iteration. Another iteration has the same if the user seeds it alike.
    iteration: tuple[int, int]
    # The epoch that epochs() has begun, or None for the next one.
    epoch: int | None
    worker: int
    workers: int
    # Whether the loader of the iteration counts what it hands out.
    is_counted: bool


class Workers:
    """Listens on an abstract Unix socket, and answers each worker in a thread of its own."""

    def __init__(self, claim: Callable[[int | None, bool], Iterator[Step]]) -> None:
        """claim: returns the steps of an epoch, or of the next one (None), after finish(). The second argument is
        Hello.is_counted. It must not keep the data set alive."""
        self.address = f"\0supply-{os.getpid()}-{secrets.token_hex(8)}"
        self.batches: WorkerBatches | None = None
        self._claim = claim
        self._listener: socket.socket | None = None
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._newest: tuple[int, int] | None = None
        # The workers of each iteration.
        self._joined: dict[tuple[int, int], set[int]] = {}
        self._is_closed = False
        _all.add(self)

    def listen(self) -> None:
        """Starts the server, if it does not run."""
        if self._listener is None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.address)
            self._listener.listen()
            threading.Thread(target=_accept, args=(self._listener, weakref.ref(self)), daemon=True).start()
            weakref.finalize(self, _end_of_listening, self._listener, os.getpid())

    def finish(self) -> bool:
        """Ends the iteration that workers read. True: they have got all of it, but nobody has counted what."""
        batches, self.batches = self.batches, None
        if batches is None:
            return False
        batches.stop()
        return batches.has_ended and not batches.is_counted

    def close(self) -> None:
        """Answers no worker any more."""
        self._is_closed = True
        if self.batches is not None:
            self.batches.stop(_CLOSED)

    def abandon_in_child(self) -> None:
        """Closes this process's copies of the sockets."""
        for connection in self._connections:
            connection.close()
        if self._listener is not None:
            self._listener.close()

    def serve(self, connection: Connection) -> None:
        """Answers a worker until it leaves."""
        self._connections.add(connection)
        try:
            hello = connection.recv()
            self._answer(connection, hello)
        except (EOFError, OSError):
            pass
        finally:
            self._connections.discard(connection)
            connection.close()

    def _answer(self, connection: Connection, hello: Hello) -> None:
        try:
            batches = self._join(hello)
        except Exception as error:
            connection.send_bytes(packed(error))
            return
        number = hello.worker
        try:
            # A worker asks with an empty message.
            while not connection.recv_bytes():
                try:
                    message = batches.take(number)
                except Exception as error:
                    message = packed(error)
                connection.send_bytes(message)
                number += hello.workers
        finally:
            # Its process has ended, so the loop is over.
            if not batches.has_ended:
                batches.stop()

    def _join(self, hello: Hello) -> WorkerBatches:
        with self._lock:
            joined = self._joined.get(hello.iteration)
            # A worker joins once. If it has joined already, this is another loop, seeded alike.
            if joined is not None and hello.worker not in joined:
                if self.batches is None or self._newest != hello.iteration:
                    raise SupplyError("another loop over this data set has begun")
                joined.add(hello.worker)
                return self.batches
            if self._is_closed:
                raise SupplyError(_CLOSED)
            self.batches = WorkerBatches(self._claim(hello.epoch, hello.is_counted), hello.is_counted)
            self._newest = hello.iteration
            self._joined[hello.iteration] = {hello.worker}
            return self.batches


def _accept(listener: socket.socket, workers_of: weakref.ref[Workers]) -> None:
    failing_since = None
    while True:
        try:
            peer, _ = listener.accept()
        except ConnectionError:
            continue
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EBADF):
                # _end_of_listening()
                return
            failing_since = failing_since or time.monotonic()
            if time.monotonic() < failing_since + _RETRY_SECONDS:
                time.sleep(_RETRY_PAUSE_SECONDS)
                continue
            _log.error("no worker can connect any more: %s (ulimit -n?)", error.strerror)
            # Otherwise workers would connect, and wait for ever.
            listener.close()
            return
        failing_since = None
        workers = workers_of()
        if workers is None or not is_of_this_user(peer):
            peer.close()
            continue
        threading.Thread(target=workers.serve, args=(Connection(peer.detach()),), daemon=True).start()
        del workers


def is_of_this_user(peer: socket.socket) -> bool:
    """Whether the other process has this user. Messages are pickled, so those of others would be dangerous."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.getuid())


def _end_of_listening(listener: socket.socket, process: int) -> None:
    """close() alone does not wake the thread that accepts. A child must not shut down what its parent uses."""
    if os.getpid() == process:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    listener.close()
