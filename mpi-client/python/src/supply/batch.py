"""A batch: the values of some elements, by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from supply.errors import ConfigError
from supply.jagged import Jagged

Values = Union[torch.Tensor, Jagged, "list[Any]"]


class Batch(dict[str, Values]):
    """A dict of the values by column. A type of its own, because default_collate() must not take a list of them."""


def _refuse_collation(batches: Sequence[Batch], **_: Any) -> None:
    raise ConfigError(
        "a SupplyDataset yields whole batches: write DataLoader(..., batch_size=None), and set the size with "
        "SupplyDataset(batch_size=...)"
    )


default_collate_fn_map[Batch] = _refuse_collation


def size_of(batch: Batch) -> int:
    """Number of elements."""
    values = next(iter(batch.values()))
    return len(values.offsets) - 1 if isinstance(values, Jagged) else len(values)


def rows_of(batch: Batch) -> list[dict[str, Any]]:
    """Each element as a dict of its values by column. Of a jagged column it is a tensor of the element's values."""
    columns = {name: _unjagged(values) if isinstance(values, Jagged) else values for name, values in batch.items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def repeated(batch: Batch, size: int) -> Batch:
    """A batch of `size` elements: those of the batch again and again."""
    indices = [index % size_of(batch) for index in range(size)]
    return Batch({name: _taken(values, indices) for name, values in batch.items()})


def copy_of(values: Values) -> Values:
    """A copy of the values of one column."""
    if isinstance(values, torch.Tensor):
        return values.clone()
    return list(values) if isinstance(values, list) else Jagged(*(part.clone() for part in values))


def copied(batch: Batch) -> Batch:
    """A copy that is independent of the block."""
    return Batch((name, copy_of(values)) for name, values in batch.items())


def moved(batch: Batch, device: torch.device | str) -> Batch:
    """The batch with its tensors on the device. What is there already is no copy."""
    return Batch((name, _moved(values, device)) for name, values in batch.items())


def _moved(values: Values, device: torch.device | str) -> Values:
    if isinstance(values, torch.Tensor):
        return values.to(device)
    return values if isinstance(values, list) else Jagged(*(part.to(device) for part in values))


def joined(parts: Sequence[Jagged]) -> Jagged:
    """The elements of all parts, which each begin with offset 0."""
    offsets, length = [parts[0].offsets[:1]], 0
    for part in parts:
        offsets.append(part.offsets[1:] + length)
        length += len(part.values)
    return Jagged(torch.cat([part.values for part in parts]), torch.cat(offsets))


def _taken(values: Values, indices: list[int]) -> Values:
    if isinstance(values, torch.Tensor):
        return values[torch.tensor(indices)]
    if isinstance(values, Jagged):
        elements = _unjagged(values)
        lengths = torch.tensor([0] + [len(elements[index]) for index in indices], device=values.values.device)
        return Jagged(torch.cat([elements[index] for index in indices]), lengths.cumsum(0))
    return [values[index] for index in indices]


def _unjagged(values: Jagged) -> list[torch.Tensor]:
    bounds = values.offsets.tolist()
    return [values.values[begin:end] for begin, end in zip(bounds, bounds[1:])]
