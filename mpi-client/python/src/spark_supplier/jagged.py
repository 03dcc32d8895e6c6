"""Values of different lengths, and values of a device. Without PyTorch, because blocks give numpy arrays, too."""

from __future__ import annotations

import sys
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


# Devices whose memory numpy can read, in DLPack.
_CPU, _PINNED = 1, 3


def on_host(values: Any) -> Any:
    """A tensor, or an array of a device, as a numpy array. Anything else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return _array_of(values.detach().cpu())
    if hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] not in (_CPU, _PINNED):
        # Of another library, as CuPy's and JAX's.
        import torch

        return _array_of(torch.from_dlpack(values).cpu())
    return values


def _array_of(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided:
        raise TypeError(f"it is a tensor with {tensor.layout}: write its to_dense(), or Jagged(values, offsets)")
    # numpy has no bfloat16.
    array: Any = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return array
