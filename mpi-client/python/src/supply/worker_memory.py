"""The batches of DataLoader workers in shared memory."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from supply.errors import SupplyError
from supply.shared_memory import fix, space

# Of a DataLoader that is not asked: PyTorch's default.
PREFETCH_FACTOR = 2


def share(result: Any) -> None:
    """Moves the tensors of a worker's result into shared memory, as PyTorch does later.

    If they do not fit, this raises SupplyError. PyTorch would touch pages that are not there, and the kernel would kill
    the worker.
    """
    tensors = [tensor for tensor in _tensors_in(result) if not tensor.is_shared()]
    needed = sum(_storage(tensor).nbytes() for tensor in tensors)
    free = space()[1]
    if free is not None and free < needed:
        raise SupplyError(f"a batch of {_mib(needed)} of a DataLoader worker has no space: {fix(platform.node())}")
    try:
        for tensor in tensors:
            tensor.share_memory_()
    except RuntimeError as error:
        raise SupplyError(f"{error}: {fix(platform.node())}") from error


def require_space(first: Any, free: int | None, workers: int, prefetch_factor: int) -> None:
    """Raises SupplyError if batches like this first one do not fit, once the workers have made theirs in advance.

    free: bytes that were free before; None: there is no limit.
    """
    size = sum(_storage(tensor).nbytes() for tensor in _tensors_in(first))
    needed = size * workers * prefetch_factor
    if free is not None and free < needed:
        raise SupplyError(
            f"{workers} DataLoader workers make {prefetch_factor} batches of {_mib(size)} each in advance, "
            f"{_mib(needed)} in all: {fix(platform.node())}"
        )


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.device.type == "cpu" and value.layout == torch.strided:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors_in(each)


def _storage(tensor: torch.Tensor) -> Any:
    # PyTorch 1.13 has no untyped_storage().
    return getattr(tensor, "untyped_storage", tensor.storage)()


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
