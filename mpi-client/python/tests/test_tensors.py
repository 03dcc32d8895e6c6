"""Blocks as tensors of PyTorch."""

import pyarrow
import pytest
import supply
from values import NUMBERS, batch, lies_in_mapping, received

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")

UNSIGNED = ["uint16", "uint32", "uint64"]


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind not in UNSIGNED])
def test_numbers(pair, kind):
    block = received(pair, batch(x=([NUMBERS[kind], 1, 2], kind)))
    tensor = block.torch("x")
    assert tensor.dtype == getattr(torch, kind) and tensor.tolist() == [NUMBERS[kind], 1, 2]
    assert lies_in_mapping(pair[0], tensor.data_ptr(), tensor.numel() * tensor.element_size())


@pytest.mark.parametrize("kind", UNSIGNED)
def test_types_that_pytorch_may_lack(pair, kind):
    block = received(pair, batch(x=([1], kind)))
    if hasattr(torch, kind):
        assert block.torch("x").dtype == getattr(torch, kind)
        return
    with pytest.raises(supply.ColumnError, match="'x'.*block.numpy"):
        block.torch("x")


def test_a_matrix(pair):
    values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(12), "float32"), 4)
    block = received(pair, batch(x=values))
    assert block.torch("x").shape == (3, 4) and block.torch("x")[1].tolist() == [4, 5, 6, 7]


def test_a_copy_is_its_own(pair):
    block = received(pair, batch(x=([1, 2, 3], "int32"), b=([True, False, True], "bool")))
    tensor = block.torch("x", copy=True)
    tensor[0] = 7
    assert block.torch("x").tolist() == [1, 2, 3] and block.torch("b", copy=True).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "column, says", [((["a", "bc"], "string"), "record_batch"), (([1, None], "int32"), "1 of 2 elements are null")]
)
def test_what_a_tensor_can_not_say(pair, column, says):
    block = received(pair, batch(x=column))
    with pytest.raises(supply.ColumnError, match=f"'x'.*{says}"):
        block.torch("x")
