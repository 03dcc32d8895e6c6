"""The ring as pinned memory of CUDA."""

from __future__ import annotations

from collections.abc import Callable

import torch

from supply._errors import SupplyError

# Where the ring begins in the mapped file (proto/layout.tsv).
_RING_OFFSET = 65536
# cudaHostRegisterReadOnly: this process can not write there.
_READ_ONLY = 8


def pin_ring(address: int, size: int) -> Callable[[], None]:
    """Registers the ring of a mapped file with CUDA. Returns what undoes it."""
    if not torch.cuda.is_available():
        raise SupplyError(f"pin=True: PyTorch {torch.__version__} sees no CUDA device here: leave pin out")
    cuda = torch.cuda.cudart()
    ring = address + _RING_OFFSET
    status = int(cuda.cudaHostRegister(ring, size - _RING_OFFSET, _READ_ONLY))
    if status != 0:
        raise SupplyError(
            f"pin=True: cudaHostRegister of {size - _RING_OFFSET} bytes failed with CUDA error {status}: the device may not take "
            "read-only memory, or the limit of locked memory (ulimit -l) is too low: leave pin out, or set ring= smaller"
        )
    return lambda: cuda.cudaHostUnregister(ring) and None
