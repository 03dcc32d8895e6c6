"""What a Dataset is in a worker of a DataLoader, and the batches of workers in shared memory."""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from spark_supplier.batch import Batch
from spark_supplier.errors import ConfigError, SupplyError
from spark_supplier.limits import more_space, space
from spark_supplier.workers import Hello, is_of_this_user, unpacked

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
