"""The forms that lists have in the batches of a program, as the option `ragged` says. Until then they are Jagged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from spark_supplier.arguments import MASK_SUFFIX, ByColumn
from spark_supplier.batch import Batch, length_of
from spark_supplier.errors import ColumnError
from spark_supplier.jagged import Jagged


class Forms:
    """Makes what the program gets of a batch. A worker of a DataLoader gets a copy of it."""

    def __init__(
        self,
        ragged: Mapping[str, str] | str | None,
        columns: Sequence[str],
        transform: Callable[[Batch], Any] | None = None,
        collate_fn: Callable[[list[dict[str, Any]]], Any] | None = None,
    ) -> None:
        self._default = ragged if isinstance(ragged, str) else None
        self._ragged = ByColumn(None if isinstance(ragged, str) else ragged, columns)
        self._transform = transform
        self._collate_fn = collate_fn

    def __call__(self, batch: Batch) -> Any:
        """What the loop gets."""
        for values in batch.values():
            if not isinstance(values, (torch.Tensor, list)):
                batch = Batch((name, self._finished(name, part)) for name, part in batch.items())
                break
        if self._collate_fn is not None:
            return self._collate_fn(rows_of(batch))
        return batch if self._transform is None else self._transform(batch)

    def _finished(self, name: str, values: Any) -> Any:
        if isinstance(values, Jagged):
            return self._list(name, values)
        if not isinstance(values, dict):
            return values
        if self._ragged.given.get(name) == "sparse":
            return _sparse(name, values)
        return {field: self._finished(f"{name}.{field}", part) for field, part in values.items()}

    def _list(self, name: str, values: Jagged) -> Any:
        form = self._ragged.of(name)
        if form is None and name.endswith(MASK_SUFFIX):
            # It has the form of its column.
            form = self._ragged.of(name[: -len(MASK_SUFFIX)])
        form = form or self._default
        if form == "list" or (form != "jagged" and _has_lists(values)):
            return listed(values)
        if form == "pad":
            return padded(values)
        return values if form in (None, "jagged") else _nested(name, values)


def rows_of(batch: Batch) -> list[dict[str, Any]]:
    """Each element as a dict of its values by column. Of a list it is a tensor, of a struct a dict."""
    return _rows(batch, length_of(batch))


def _rows(values: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
    columns = [_elements(part, size) for part in values.values()]
    return [dict(zip(values, row)) for row in zip(*columns)] if columns else [{} for _ in range(size)]


def _elements(values: Any, size: int) -> Any:
    if isinstance(values, dict):
        return _rows(values, size)
    if isinstance(values, Jagged):
        return listed(values)
    if not isinstance(values, torch.Tensor) or values.layout == torch.strided and not values.is_nested:
        return values
    return _sparse_rows(values) if values.layout == torch.sparse_csr else values.unbind()


def listed(values: Jagged) -> list[Any]:
    """A list of the elements: a tensor for each list, of lists of lists a list, of lists of structs a dict."""
    inner, bounds = values.values, values.offsets.tolist()
    if isinstance(inner, dict):
        fields = {name: listed(Jagged(part, values.offsets)) for name, part in inner.items()}
        return _rows(fields, len(bounds) - 1)
    if isinstance(inner, Jagged):
        inner = listed(inner)
    return [inner[begin:end] for begin, end in zip(bounds, bounds[1:])]


def padded(values: Any) -> Any:
    """A dense tensor: each list, and then zeros up to the longest one."""
    inner = values.values
    if isinstance(inner, dict):
        return {name: padded(Jagged(part, values.offsets)) for name, part in inner.items()}
    if isinstance(inner, Jagged):
        inner = padded(inner)
    lengths = values.offsets.diff()
    longest = int(lengths.max()) if len(lengths) else 0
    tensor = inner.new_zeros((len(lengths), longest, *inner.shape[1:]))
    tensor[torch.arange(longest, device=inner.device) < lengths[:, None]] = inner
    return tensor


def _has_lists(values: Any) -> bool:
    """Whether its innermost values are texts, which no tensor has."""
    if isinstance(values, Jagged):
        return _has_lists(values.values)
    if isinstance(values, dict):
        return any(map(_has_lists, values.values()))
    return isinstance(values, list)


def _nested(name: str, values: Jagged) -> torch.Tensor:
    make: Callable[..., torch.Tensor] | None = getattr(torch.nested, "nested_tensor_from_jagged", None)
    if make is None:
        raise ColumnError(
            f"column '{name}': PyTorch {torch.__version__} has no nested tensors with jagged layout: update it, or "
            f"set ragged={{{name!r}: 'pad'}}, or 'jagged'"
        )
    if not isinstance(values.values, torch.Tensor):
        raise ColumnError(
            f"column '{name}': a nested tensor has lists of numbers, and here they are lists of lists or structs: set "
            f"ragged={{{name!r}: 'pad'}}, or 'jagged'"
        )
    return make(values.values, values.offsets)


def _sparse(name: str, values: dict[str, Any]) -> torch.Tensor:
    sizes, (numbers, rows) = values["size"], values["values"]
    width = int(sizes.max()) if len(sizes) else 0
    # A vector that is null has no size.
    if ((sizes != width) & (sizes != 0)).any():
        raise ColumnError(
            f"column '{name}': its vectors have sizes from {int(sizes[sizes != 0].min())} to {width}, and a tensor has "
            "one: make them equal in Spark, or leave 'sparse' out of ragged"
        )
    indices = values["indices"].values.to(torch.int64)
    return torch.sparse_csr_tensor(rows, indices, numbers, (len(sizes), width))


def _sparse_rows(values: torch.Tensor) -> list[torch.Tensor]:
    rows, width = values.crow_indices(), values.shape[1]
    indices, numbers = (listed(Jagged(part, rows)) for part in (values.col_indices(), values.values()))
    return [torch.sparse_coo_tensor(index[None], number, (width,)) for index, number in zip(indices, numbers)]
