"""Values of different lengths. Without PyTorch, because blocks give them as numpy arrays, too."""

from __future__ import annotations

from typing import Any, NamedTuple


class Jagged(NamedTuple):
    """Values of different lengths, one after the other: value i is values[offsets[i] : offsets[i + 1]].

    torch.nested.nested_tensor_from_jagged(*jagged) makes a nested tensor of tensors, if your PyTorch has that function.

    Attributes
    ----------
    values : tensor or array
        Of shape (values of all rows, ...). Of lists of lists Jagged, of lists of structs a dict by field.
    offsets : tensor or array of int64
        Of shape (rows + 1,).
    """

    values: Any
    offsets: Any
