"""Who holds a block: nobody reads what the task may write again, and who holds too much is told."""

import gc
import os
import signal
import subprocess
import sys
import threading

import pyarrow
import pytest
import supply
from task import wait_until
from values import NEEDS_TORCH


def numbers(first, count=4):
    return pyarrow.record_batch(
        [pyarrow.array(range(first, first + count), "int64")],
        schema=pyarrow.schema([pyarrow.field("x", "int64", False)]),
    )


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


VIEWS = [
    take_numpy,
    take_slice,
    pytest.param(take_torch, marks=NEEDS_TORCH),
    take_batch,
    take_arrow_column,
    take_capsules,
]


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


def test_a_copy_does_not(pair):
    rank, task = pair
    task.supply(numbers(0))
    block = rank.next_block()
    kept = block.numpy("x", copy=True)
    del block
    assert task.header("released") == 1 and kept.tolist() == [0, 1, 2, 3]


def test_views_go_in_any_order(pair):
    rank, task = pair
    for first in (0, 4, 8):
        task.supply(numbers(first))
    views = [rank.next_block().numpy("x") for _ in range(3)]
    del views[1]
    assert task.header("released") == 0
    del views[0]
    assert task.header("released") == 2 and views[0].tolist() == [8, 9, 10, 11]


def test_iterating_holds_one_block_at_a_time(pair):
    rank, task = pair
    supplying = threading.Thread(
        target=lambda: [
            *(task.supply(numbers(first)) for first in range(100)),
            task.end_of_epoch(),
            task.end_of_data(),
            task.see_end(),
        ]
    )
    supplying.start()
    first = [block.numpy("x")[0].item() for block in rank]
    rank.close()
    supplying.join()
    assert first == list(range(100)) and rank.at_end_of_data


def test_hoarding_is_an_error_that_says_so(pair):
    rank, task = pair
    for first in range(4):
        task.supply(numbers(first))
    first, second = rank.next_block(), rank.next_block().numpy("x")
    third, fourth = pyarrow.record_batch(rank.next_block()), rank.next_block().numpy("x")
    with pytest.raises(supply.AllHeldError) as failure:
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
    assert rank.next_block().numpy("x")[0] == 4, "the run goes on"
    del second, third, fourth


def test_a_loop_in_a_ring_of_two_blocks_is_told_what_it_needs(open_pair):
    rank, task = open_pair(ring=2 * 16384)
    task.supply(numbers(0))
    task.end_of_epoch()
    with pytest.raises(
        supply.AllHeldError, match="block 0: the block itself.*The end of an epoch and the end of the data"
    ):
        for block in rank:
            pass
    del block
    task.end_of_data()
    assert rank.next_block() is None and rank.at_end_of_data


def test_closing_takes_the_end_of_the_data_where_there_is_room(open_pair):
    rank, task = open_pair(ring=3 * 16384)
    task.supply(numbers(0))
    task.end_of_epoch()
    task.end_of_data()
    kept = [block.numpy("x") for block in rank.epoch()]
    ending = threading.Thread(target=task.see_end)
    ending.start()
    rank.close()
    ending.join()
    assert kept[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("take", VIEWS[:-1])
def test_a_view_outlives_the_supply(files, open_pair, take):
    rank, task = open_pair()
    task.supply(numbers(5))
    view = take(rank.next_block())
    rank.close()
    assert files.left_behind() == []
    # What comes to lie at the mapping's place, where it is not kept, is not these numbers.
    other = supply.open(files.folder, 0)
    values = view.column("x") if take is take_batch else view
    assert (values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()) == (
        [6, 8] if take is take_slice else [5, 6, 7, 8]
    )
    other.abort("the test has ended")


def test_after_close(pair):
    rank, task = pair
    task.supply(numbers(5))
    block = rank.next_block()
    rank.close()
    rank.close()
    for call in (lambda: block.numpy("x"), lambda: pyarrow.record_batch(block), rank.next_block, lambda: rank.position):
        with pytest.raises(supply.SupplyError, match="closed"):
            call()


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


def test_an_exception_tells_spark_why(pair):
    rank, task = pair
    with pytest.raises(ZeroDivisionError):
        with rank:
            1 / 0
    assert task.failure_of_rank() == "ZeroDivisionError: division by zero"


def test_failures_of_the_task(pair):
    rank, task = pair
    task.fail("the source is gone")
    with pytest.raises(supply.SparkError, match="^the source is gone$") as failure:
        rank.next_block()
    assert failure.value.status == "SUPPLY_ERROR_SPARK"


def test_a_task_that_supplies_nothing(open_pair):
    rank, _ = open_pair(timeout=0.2)
    with pytest.raises(TimeoutError, match="SUPPLY_TIMEOUT"):
        rank.next_block()


def test_a_pair_in_use(files, pair):
    with pytest.raises(supply.InUseError):
        supply.open(files.folder, 0)


def test_config_files_are_named(tmp_path):
    with pytest.raises(supply.ConfigError, match=f"{tmp_path}/mapped-files.conf"):
        supply.open(tmp_path, 0)


def test_a_forked_child_is_refused_and_changes_nothing(pair):
    rank, task = pair
    task.supply(numbers(0))
    block = rank.next_block()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            rank.next_block()
        except supply.SupplyError as error:
            os.write(write, str(error).encode())
        del block
        rank.close()
        gc.collect()
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        assert f"belongs to process {os.getpid()}" in (text := pipe.read()) and "num_workers=0" in text
    assert task.header("released") == 0 and block.numpy("x").tolist() == [0, 1, 2, 3]


PROGRAM = """
import sys, supply
s = supply.open(sys.argv[1], 0, timeout=60)
print("waiting", flush=True)
s.next_block()
"""


def test_ctrl_c_ends_a_wait_and_leaves_nothing(files):
    rank = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(files.folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert rank.stdout.readline() == "waiting\n"
    rank.send_signal(signal.SIGINT)
    _, error = rank.communicate(timeout=60)
    assert "KeyboardInterrupt" in error and files.left_behind() == []


def test_a_supply_that_is_not_closed_leaves_nothing(files):
    program = "import sys, supply\nkept = supply.open(sys.argv[1], 0)\nsys.kept = kept"
    subprocess.run([sys.executable, "-c", program, str(files.folder)], check=True, timeout=60)
    assert files.left_behind() == []


def test_positions(open_pair):
    rank, task = open_pair()
    assert rank.position == "position-1:0:0:0:0:0000000000000077"
    task.supply(numbers(0), epoch=2, partition=3, first_element=10)
    task.end_of_epoch(2)
    block = rank.next_block()
    assert rank.position == "position-1:0:0:0:0:0000000000000077"
    assert block.position_behind(2) == "position-1:2:1:3:12:0000000000000077"
    assert rank.next_block() is None and not rank.at_end_of_data and rank.ended_epoch == 2
    assert rank.ended_epoch_position == "position-1:3:0:0:0:0000000000000077"
    del block
    assert rank.position == "position-1:3:0:0:0:0000000000000077"
    assert rank.statistics[:2] == (4, 1)
    rank.abort("enough")
    _, task = open_pair(position="position-1:2:1:3:12:0000000000000077")
    assert [task.header(f"start_{what}") for what in ("epoch", "partition", "element", "plan")] == [2, 3, 12, 0x77]


def test_a_position_that_is_none(files):
    with pytest.raises(supply.SupplyError, match="position 'bogus'"):
        supply.open(files.folder, 0, position="bogus")


def test_statistics_count_the_waiting(pair):
    rank, task = pair
    waiting = threading.Thread(target=rank.next_block)
    waiting.start()
    wait_until("a wait", lambda: rank.statistics.seconds_waited > 0)
    task.supply(numbers(0))
    waiting.join()
