"""What is of PyTorch alone about blocks as tensors; the rest stands in test_blocks.py."""

import pytest
import supply
from values import UNSIGNED, batch, received

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")


@pytest.mark.parametrize("kind", UNSIGNED)
def test_types_that_pytorch_may_lack(pair, kind):
    block = received(pair, batch(x=([1], kind)))
    if hasattr(torch, kind):
        assert block.torch("x").dtype == getattr(torch, kind)
        return
    with pytest.raises(supply.ColumnError, match="'x'.*block.numpy"):
        block.torch("x")
