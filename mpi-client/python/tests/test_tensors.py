"""Tensors of types that some versions of PyTorch lack. test_blocks.py has the rest."""

import pytest
import spark_supplier

from values import UNSIGNED, batch, received

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")


@pytest.mark.parametrize("kind", UNSIGNED)
def test_unsigned_integers(pair, kind):
    block = received(pair, batch(x=([1], kind)))
    if hasattr(torch, kind):
        assert block.torch("x").dtype == getattr(torch, kind)
        return
    with pytest.raises(spark_supplier.ColumnError, match="'x'.*block.numpy"):
        block.torch("x")
