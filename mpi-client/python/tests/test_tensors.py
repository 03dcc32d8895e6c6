"""Tensors of types that some versions of PyTorch lack. test_blocks.py has the rest."""

import pytest
import spark_supplier
import torch

from values import UNSIGNED, batch, received


@pytest.mark.parametrize("kind", UNSIGNED)
def test_unsigned_integers(pair, kind):
    block = received(pair, batch(x=([1], kind)))
    if hasattr(torch, kind):
        assert block.torch("x").dtype == getattr(torch, kind)
        return
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*block.numpy"):
        block.torch("x")
