"""The workers of a DataLoader, and the server in the process with the pair, from which they get batches."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pickle
import platform
import secrets
import socket
import struct
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy
import torch
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from spark_supplier.batch import Batch, copied, mapped
from spark_supplier.equal_steps import Step
from spark_supplier.errors import ConfigError, SupplyError
from spark_supplier.limits import more_space, space

# The path of a socket has 107 characters. multiprocessing adds /pymp-xxxxxxxx/listener-xxxxxxxx.
_LONGEST_FOLDER = 75


def check_folder() -> None:
    """Refuses workers that would fail in a thread of PyTorch, and leave the loop waiting."""
    if len(tempfile.gettempdir()) > _LONGEST_FOLDER:
        raise SupplyError(
            f"workers need a shorter folder for temporary files than {tempfile.gettempdir()}, for multiprocessing's "
            f"sockets: set TMPDIR to one of at most {_LONGEST_FOLDER} characters"
        )


class WorkerBatches:
    """Makes batches in the order of their numbers, each when a worker asks for it. Any thread may call it."""

    def __init__(self, steps: Iterator[Step], is_counted: bool) -> None:
        """steps: one thread at a time advances them. is_counted: whether handed_out() tells what the loop has."""
        self._steps: Iterator[Step] | None = steps
        self._changed = threading.Condition()
        self._is_reading = False
        self._made = 0
        self._error: BaseException | None = None
        self._waiting: dict[int, bytes] = {}
        # The steps that the loop may not have yet, without their batches. Only if counted.
        self._not_handed_out: dict[int, Step] = {}
        self._handed_out = 0
        self.is_counted = is_counted
        self.has_ended = False

    def take(self, number: int) -> bytes:
        """Waits for the batch of this number, from 0, as for Reader.next_block(). Returns the message with it."""
        with self._changed:
            while number not in self._waiting:
                if self._error is not None:
                    raise self._error
                if self._steps is None:
                    return packed(None)
                if self._is_reading:
                    self._changed.wait()
                else:
                    self._read(self._steps)
            return self._waiting.pop(number)

    def stop(self, reason: str = "the loop has left this epoch") -> None:
        """Drops the batches and the block that the iteration holds. It waits for a call that is reading."""
        with self._changed:
            while self._is_reading:
                self._changed.wait()
            if self._steps is not None:
                self._error = SupplyError(reason)
            self._steps = None
            self._waiting.clear()

    def handed_out(self) -> Step:
        """The loop has got the next batch. Returns its step, without the batch."""
        with self._changed:
            step = self._not_handed_out.pop(self._handed_out)
            self._handed_out += 1
            return step

    def _read(self, steps: Iterator[Step]) -> None:
        """Makes the next batch, without the lock, so that others can take those that are made."""
        self._is_reading = True
        self._changed.release()
        made: tuple[bytes, Step] | None = None
        error: BaseException | None = None
        try:
            made = _next(steps)
        except BaseException as raised:
            error = raised
        self._changed.acquire()
        self._is_reading = False
        if made is None:
            self._error, self._steps, self.has_ended = error, None, error is None
        else:
            self._waiting[self._made] = made[0]
            if self.is_counted:
                self._not_handed_out[self._made] = made[1]
            self._made += 1
        self._changed.notify_all()


def _next(steps: Iterator[Step]) -> tuple[bytes, Step] | None:
    step = next(steps, None)
    if step is None:
        return None
    last = None if step.last is None else copied(step.last)
    return packed(step.batch), Step(Batch(), step.position, last)


def packed(batch: Batch | BaseException | None) -> bytes:
    """A message to a worker: a batch, an error, or None at the end of the epoch."""
    if isinstance(batch, Batch):
        return pickle.dumps({name: mapped(values, _with_arrays) for name, values in batch.items()}, protocol=5)
    try:
        return pickle.dumps(batch)
    except Exception:
        return pickle.dumps(SupplyError(f"{type(batch).__name__}: {batch}"))


def unpacked(message: Any) -> Batch | None:
    """The batch of a message, with tensors of its own. Raises its error."""
    if isinstance(message, BaseException):
        raise message
    if message is None:
        return None
    return Batch((name, mapped(values, _with_tensors)) for name, values in message.items())


class _BFloat16(NamedTuple):
    """numpy has no such type: the same bits as integers."""

    bits: numpy.ndarray


def _with_arrays(values: Any) -> Any:
    """numpy arrays: PyTorch would move each tensor into a shared file of its own."""
    if not isinstance(values, torch.Tensor):
        return values
    return _BFloat16(values.view(torch.int16).numpy()) if values.dtype == torch.bfloat16 else values.numpy()


def _with_tensors(values: Any) -> Any:
    if isinstance(values, _BFloat16):
        return torch.from_numpy(values.bits).view(torch.bfloat16)
    return torch.from_numpy(values) if isinstance(values, numpy.ndarray) else values


# How long the server may be out of files. Then no worker gets through to it any more.
_RETRY_SECONDS = 30
_RETRY_PAUSE_SECONDS = 0.2

_CLOSED = "the data set is closed"

_log = logging.getLogger("spark_supplier.torch")

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
        self._starting = threading.Lock()
        self._newest: tuple[int, int] | None = None
        # The workers of each iteration.
        self._joined: dict[tuple[int, int], set[int]] = {}
        self._is_closed = False
        _all.add(self)

    def listen(self) -> None:
        """Starts the server, if it does not run. Several threads may fork at the same time."""
        with self._starting:
            if self._listener is not None:
                return
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
            # The worker asks for its first batch before it reads. A closed connection would be its error.
            connection.recv_bytes()
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
            _refuse_workers(listener, f"{error.strerror} (ulimit -n?)")
            return
        failing_since = None
        workers = workers_of()
        if workers is None or not is_of_this_user(peer):
            peer.close()
            continue
        connection = Connection(peer.detach())
        try:
            threading.Thread(target=workers.serve, args=(connection,), daemon=True).start()
        except RuntimeError as error:
            _refuse_workers(listener, f"{error} (ulimit -u, pids.max?)")
            connection.close()
            return
        del workers


def _refuse_workers(listener: socket.socket, why: str) -> None:
    """Otherwise they would connect, and wait for ever."""
    _log.error("no worker can connect any more: %s", why)
    listener.close()


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


# Of a DataLoader that is not asked: PyTorch's default.
PREFETCH_FACTOR = 2
_PASSES_SPARSE_TENSORS = hasattr(torch.multiprocessing.reductions, "reduce_sparse_tensor")


def refuse_collation() -> None:
    """Raises ConfigError if PyTorch's DataLoader makes batches of batches. It has called the caller, an __iter__."""
    caller = sys._getframe(2)
    # The program's own would keep all its values as long as it runs.
    loader = caller.f_locals if caller.f_globals.get("__name__", "").startswith("torch.utils.data") else {}
    if loader.get("auto_collation") and loader.get("collate_fn") is default_collate:
        raise ConfigError(
            "a Dataset yields whole batches: write DataLoader(..., batch_size=None), and set the size with "
            "Dataset(batch_size=...)"
        )


def share(result: Any) -> None:
    """Moves the tensors of a worker's result into shared memory, as PyTorch does later.

    If they do not fit, this raises SupplyError. PyTorch would touch pages that are not there, and the kernel would kill
    the worker.
    """
    found = list(_tensors_in(result))
    if any(tensor.layout == torch.sparse_csr for tensor in found) and not _PASSES_SPARSE_TENSORS:
        raise SupplyError(
            f"PyTorch {torch.__version__} passes no sparse tensors from the workers of a DataLoader: update it, leave "
            "num_workers out, or make them dense in transform, tensor.to_dense()"
        )
    tensors = [tensor for tensor in found if _is_dense(tensor) and not tensor.is_shared()]
    needed = sum(_storage(tensor).nbytes() for tensor in tensors)
    free = space()[1]
    if free is not None and free < needed:
        raise SupplyError(
            f"a batch of {_mib(needed)} of a DataLoader worker has no space: {more_space(platform.node())}"
        )
    try:
        for tensor in tensors:
            tensor.share_memory_()
    except RuntimeError as error:
        raise SupplyError(f"{error}: {more_space(platform.node())}") from error


def require_space(first: Any, free: int | None, workers: int, prefetch_factor: int) -> None:
    """Raises SupplyError if batches like this first one do not fit, once the workers have made theirs in advance.

    free: bytes that were free before; None: there is no limit.
    """
    size = sum(_storage(tensor).nbytes() for tensor in filter(_is_dense, _tensors_in(first)))
    needed = size * workers * prefetch_factor
    if free is not None and free < needed:
        raise SupplyError(
            f"{workers} DataLoader workers make {prefetch_factor} batches of {_mib(size)} each in advance, "
            f"{_mib(needed)} in all: {more_space(platform.node())}"
        )


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors_in(each)


def _is_dense(tensor: torch.Tensor) -> bool:
    return bool(tensor.device.type == "cpu" and tensor.layout == torch.strided)


def _storage(tensor: torch.Tensor) -> Any:
    # PyTorch 1.13 has no untyped_storage().
    return getattr(tensor, "untyped_storage", tensor.storage)()


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


# spark_supplier.torch.DataLoader sets them in its workers.
_is_counted = False
_prefetch_factor = PREFETCH_FACTOR


class WorkerSide(IterableDataset):
    """Asks the process that has the pair for batches, and transforms them."""

    def __init__(self, address: str, transform: Callable[[Batch], Any]) -> None:
        super().__init__()
        self._address = address
        self._transform = transform
        # A persistent worker has several.
        self._iterations = 0
        self._connection: Connection | None = None

    def __iter__(self) -> Iterator[Any]:
        refuse_collation()
        return self._batches_of(None)

    def _batches_of(self, epoch: int | None) -> Iterator[Any]:
        """This worker's share of an epoch, or of the next one (None): each batch whose turn it is. For Epoch, too."""
        worker = get_worker_info()
        if worker is None:
            raise SupplyError("this copy of a Dataset can be read in a worker of a DataLoader only")
        self._iterations += 1
        iteration = (worker.seed - worker.id, self._iterations)
        # After an error it stays open until the process ends: the loop still gets the batches of the other workers.
        self._connection = connection = _connect(self._address)
        connection.send(Hello(iteration, epoch, worker.id, worker.num_workers, _is_counted))
        connection.send_bytes(b"")
        is_first, free = True, space()[1]
        while (batch := unpacked(_message(connection))) is not None:
            # The next batch is made while this one is transformed.
            connection.send_bytes(b"")
            result = self._transform(batch)
            if is_first and worker.id == 0:
                require_space(result, free, worker.num_workers, _prefetch_factor)
            is_first = False
            share(result)
            yield result
            del batch, result
        connection.close()


def count_in_worker(init: Callable[[int], None] | None, prefetch_factor: int, worker: int) -> None:
    """The worker_init_fn of spark_supplier.torch.DataLoader. init: that of the user."""
    global _is_counted, _prefetch_factor
    _is_counted, _prefetch_factor = True, prefetch_factor
    if init is not None:
        init(worker)


def _connect(address: str) -> Connection:
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(address)
    except OSError as error:
        raise SupplyError(f"a worker cannot reach the process that reads Spark's data: {error.strerror}") from error
    if not is_of_this_user(peer):
        raise SupplyError("a worker has reached a process of another user")
    return Connection(peer.detach())


def _message(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError) as error:
        raise SupplyError("the process that reads Spark's data has closed the data set") from error
