"""Lets Debian 12's PyTorch 1.13 import torch.distributed._shard under Python 3.11, which Lightning and Ray Train do.

Python 3.11 refuses a default value without a hash in a dataclass, and PyTorch 1.13 has one: a TensorProperties. Later
versions of PyTorch do not need this.
"""

import dataclasses

_dataclass = dataclasses.dataclass


def dataclass(cls=None, /, **options):
    if cls is not None and cls.__qualname__ == "TensorProperties":
        options["unsafe_hash"] = True
    return _dataclass(cls, **options)


dataclasses.dataclass = dataclass
