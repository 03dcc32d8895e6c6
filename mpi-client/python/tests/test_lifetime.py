"""Blocks and the views of them: the task gets a slot when all references to its block are gone."""

import contextlib
import gc
import threading

import pyarrow
import pytest
import spark_supplier

from values import batch, numbers


def take_numpy(block):
    return block.numpy("x")


def take_slice(block):
    return block.numpy("x")[1:][::2]


def take_torch(block):
    return block.torch("x")


def take_batch(block):
    return pyarrow.record_batch(block)


def take_arrow_column(block):
    return pyarrow.record_batch(block).column("x")


def take_capsules(block):
    return block.__arrow_c_array__()


VIEWS = [take_numpy, take_slice, take_torch, take_batch, take_arrow_column, take_capsules]


@pytest.mark.parametrize("take", VIEWS)
def test_a_view_keeps_its_block(pair, take):
    rank, task = pair
    task.supply(numbers(0))
    block = rank.next_block()
    view = take(block)
    del block
    gc.collect()
    assert task.header("released") == 0
    del view
    gc.collect()
    assert task.header("released") == 1


def test_a_copy_does_not_keep_its_block(pair):
    rank, task = pair
    task.supply(numbers(0))
    block = rank.next_block()
    kept = block.numpy("x", copy=True)
    del block
    assert task.header("released") == 1 and kept.tolist() == [0, 1, 2, 3]


def test_views_are_dropped_in_any_order(pair):
    rank, task = pair
    for first in (0, 4, 8):
        task.supply(numbers(first))
    views = [rank.next_block().numpy("x") for _ in range(3)]
    del views[1]
    assert task.header("released") == 0
    del views[0]
    assert task.header("released") == 2 and views[0].tolist() == [8, 9, 10, 11]


def tensors_of(block, *names):
    """By the one call that makes all tensors of a block."""
    return block._core.plain_columns(list(names)).tensors(block._core)


def test_the_last_tensor_of_a_block_releases_it_in_any_thread(pair):
    rank, task = pair
    task.supply(batch(x=(range(4), "int64"), y=([0.5] * 4, "float32")))
    block = rank.next_block()
    tensors = tensors_of(block, "x", "y")
    del block
    del tensors[0]
    assert task.header("released") == 0 and tensors[0].tolist() == [0.5] * 4
    dropping = threading.Thread(target=tensors.clear)
    dropping.start()
    dropping.join()
    assert task.header("released") == 1


def test_tensors_that_pytorch_does_not_make_hold_no_block(pair):
    rank, task = pair
    task.supply(batch(x=(range(4), "int64"), y=(range(4), "uint16")))
    block = rank.next_block()
    # PyTorch older than 2.3 lacks the second type.
    with contextlib.suppress(TypeError, RuntimeError, BufferError):
        tensors_of(block, "x", "y")
    gc.collect()
    del block
    assert task.header("released") == 1


def test_a_loop_holds_one_block_at_a_time(pair):
    rank, task = pair
    supplying = threading.Thread(
        target=lambda: [
            *(task.supply(numbers(first)) for first in range(100)),
            task.end_of_epoch(),
            task.end_of_data(),
            task.confirm_end(),
        ]
    )
    supplying.start()
    first = [block.numpy("x")[0].item() for block in rank]
    rank.close()
    supplying.join()
    assert first == list(range(100)) and rank.at_end_of_data


def test_an_error_lists_the_references_that_hold_the_ring(pair):
    rank, task = pair
    for first in range(4):
        task.supply(numbers(first))
    first, second = rank.next_block(), rank.next_block().numpy("x")
    third, fourth = pyarrow.record_batch(rank.next_block()), rank.next_block().numpy("x")
    with pytest.raises(spark_supplier.RingFullError) as failure:
        rank.next_block()
    for words in (
        "block 0: the block itself",
        "block 1: a view of 'x'",
        "block 3: a view of 'x'",
        "Arrow arrays",
        "copy=True",
        "ring=",
    ):
        assert words in str(failure.value)
    del first
    task.supply(numbers(4))
    assert rank.next_block().numpy("x")[0] == 4, "the run continues"
    del second, third, fourth


def test_a_ring_of_two_blocks_is_too_small_for_a_loop(open_pair):
    rank, task = open_pair(ring=2 * 16384)
    task.supply(numbers(0))
    task.end_of_epoch()
    blocks = iter(rank)
    block = next(blocks)
    with pytest.raises(
        spark_supplier.RingFullError, match="block 0: the block itself.*The end of an epoch and the end of the data"
    ):
        next(blocks)
    del block
    task.end_of_data()
    assert rank.next_block() is None and rank.at_end_of_data


@pytest.mark.parametrize("take", VIEWS[:-1])
def test_a_view_outlives_the_supply(files, open_pair, take):
    rank, task = open_pair()
    task.supply(numbers(5))
    view = take(rank.next_block())
    rank.close()
    assert files.remaining() == []
    # Without the old mapping, the new pair may get its address.
    other = spark_supplier.ranks.open(files.folder, 0)
    values = view.column("x") if take is take_batch else view
    assert (values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()) == (
        [6, 8] if take is take_slice else [5, 6, 7, 8]
    )
    other.abort("the test has ended")


def test_waiting_lets_other_threads_run_and_release(pair):
    rank, task = pair
    task.supply(numbers(0))
    view = [rank.next_block().numpy("x")]
    got = []
    waiting = threading.Thread(target=lambda: got.append(rank.next_block().numpy("x")[0]))
    waiting.start()
    view.clear()
    assert task.header("released") == 1
    task.supply(numbers(7))
    waiting.join()
    assert got == [7]


def test_positions(open_pair):
    rank, task = open_pair()
    assert rank.position == "position-1:0:0:0:0:0000000000000077"
    task.supply(numbers(0), epoch=2, partition=3, first_element=10)
    task.end_of_epoch(2)
    block = rank.next_block()
    assert rank.position == "position-1:0:0:0:0:0000000000000077"
    assert block.position_after(2) == "position-1:2:1:3:12:0000000000000077"
    assert rank.next_block() is None and not rank.at_end_of_data and rank.ended_epoch == 2
    assert rank.ended_epoch_position == "position-1:3:0:0:0:0000000000000077"
    del block
    assert rank.position == "position-1:3:0:0:0:0000000000000077"
    assert rank.statistics[:2] == (4, 1)
    rank.abort("enough")
    _, task = open_pair(position="position-1:2:1:3:12:0000000000000077")
    assert [task.header(f"start_{what}") for what in ("epoch", "partition", "element", "plan")] == [2, 3, 12, 0x77]


def test_statistics_count_the_waiting(open_pair):
    rank, _ = open_pair(timeout=0.2)
    with pytest.raises(spark_supplier.SupplyTimeoutError):
        rank.next_block()
    assert rank.statistics.seconds_waited >= 0.2


def test_the_rest_of_an_epoch_is_an_arrow_stream(pair):
    rank, task = pair
    for first in (0, 4):
        task.supply(numbers(first))
    task.end_of_epoch()
    task.end_of_epoch(1)
    reader = pyarrow.RecordBatchReader.from_stream(rank)
    assert reader.schema == numbers(0).schema
    batches = list(reader)
    assert [batch.column("x").to_pylist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert task.header("released") == 0, "a batch keeps its block"
    del batches
    assert task.header("released") == 3 and rank.ended_epoch == 0
    assert list(pyarrow.RecordBatchReader.from_stream(rank)) == [] and rank.ended_epoch == 1
