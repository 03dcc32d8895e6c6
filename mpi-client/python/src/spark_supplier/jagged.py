"""Values of different lengths. Without PyTorch, because blocks give them as numpy arrays, too."""

from __future__ import annotations

from typing import Any, NamedTuple


class Jagged(NamedTuple):
    """Values of different lengths, one after the other: value i is values[offsets[i] : offsets[i + 1]].

    values: a tensor or an array, of lists of lists Jagged, of lists of structs a dict by field. offsets: a tensor or an
    array of integers, one more than there are values. torch.nested.nested_tensor_from_jagged(*jagged) makes a nested
    tensor of tensors, if your PyTorch has that function.
    """

    values: Any
    offsets: Any
