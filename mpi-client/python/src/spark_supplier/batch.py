"""A batch: the values of some elements, by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import torch

from spark_supplier.jagged import Jagged

Values = Union[torch.Tensor, Jagged, "list[Any]", "dict[str, Any]"]


class Batch(dict[str, Values]):
    """A dict of the values by column.

    Until forms.py has finished it, lists of any length are Jagged, whatever the program wants of them.
    """


def length_of(values: Values) -> int:
    """Number of elements."""
    if isinstance(values, dict):
        return max(map(length_of, values.values()), default=0)
    return len(values.offsets) - 1 if isinstance(values, Jagged) else len(values)


def size_of(batch: Batch) -> int:
    """Number of elements."""
    return length_of(batch)


def mapped(values: Values, function: Callable[[Any], Any]) -> Values:
    """The same with each tensor and list replaced by what the function makes of it."""
    if isinstance(values, Jagged):
        return Jagged(mapped(values.values, function), function(values.offsets))
    if isinstance(values, dict):
        return {name: mapped(part, function) for name, part in values.items()}
    return function(values)


def tensors_in(values: Values) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    mapped(values, lambda part: found.append(part) if isinstance(part, torch.Tensor) else None)
    return found


def copy_of(values: Values) -> Values:
    """A copy of the values of one column."""
    return mapped(values, lambda part: part.clone() if isinstance(part, torch.Tensor) else list(part))


def copied(batch: Batch) -> Batch:
    """A copy that is independent of the block."""
    return Batch((name, copy_of(values)) for name, values in batch.items())


def moved(batch: Batch, device: torch.device | str) -> Batch:
    """The batch with its tensors on the device. What is there already is no copy."""

    def move(part: Any) -> Any:
        return part.to(device) if isinstance(part, torch.Tensor) else part

    return Batch((name, mapped(values, move)) for name, values in batch.items())


def plain(values: Any) -> Any:
    """Without classes of this package, so that torch.load reads it with weights_only."""
    if isinstance(values, dict):
        return {name: plain(part) for name, part in values.items()}
    return tuple(map(plain, values)) if isinstance(values, Jagged) else values


def of_plain(values: Any) -> Any:
    """The opposite of plain()."""
    if isinstance(values, dict):
        return {name: of_plain(part) for name, part in values.items()}
    return Jagged(*map(of_plain, values)) if isinstance(values, tuple) else values


def joined(parts: Sequence[Any]) -> Any:
    """The elements of all parts of a column. The offsets of each Jagged begin with 0."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, torch.Tensor):
        return torch.cat(list(parts))
    if isinstance(first, dict):
        return {name: joined([part[name] for part in parts]) for name in first}
    if not isinstance(first, Jagged):
        return [value for part in parts for value in part]
    offsets, length = [first.offsets[:1]], 0
    for part in parts:
        offsets.append(part.offsets[1:] + length)
        length += length_of(part.values)
    return Jagged(joined([part.values for part in parts]), torch.cat(offsets))


def taken(values: Any, indices: torch.Tensor) -> Any:
    """The elements at these indices, on the host."""
    if isinstance(values, torch.Tensor):
        return values[indices.to(values.device)]
    if isinstance(values, dict):
        return {name: taken(part, indices) for name, part in values.items()}
    if not isinstance(values, Jagged):
        return [values[index] for index in indices.tolist()]
    bounds = values.offsets.cpu()
    begins, lengths = bounds[:-1][indices], bounds.diff()[indices]
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return Jagged(taken(values.values, places_of(begins, lengths)), offsets.to(values.offsets.device))


def places_of(begins: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """All places of lists that begin there, one list after the other."""
    ends = lengths.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    return torch.arange(total) + (begins - ends + lengths).repeat_interleave(lengths)
