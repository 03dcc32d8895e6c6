"""Batches on a real CUDA device: the right bytes, whatever copies late, fills the memory or is killed.

`make test-gpu` runs these tests on a machine with a GPU. Elsewhere they are skipped.
"""

import contextlib
import pathlib
import signal
import subprocess
import sys
import threading

import numpy
import pyarrow
import pytest

from task import Task, wait_until
from values import batch

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
from spark_supplier.result_columns import array_of  # noqa: E402
from spark_supplier.torch import Dataset  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

RING, BLOCK, ELEMENTS, WIDTH = 4 << 20, 1 << 20, 60, 4096
LATE = 20_000_000  # cycles of the device, about 10 ms
PROGRAM = pathlib.Path(__file__).with_name("device_program.py")


def rows_of_block(number, elements=ELEMENTS):
    """Every number of the block is its own."""
    values = numpy.arange(elements * WIDTH, dtype=numpy.int32) + number * 7919
    return batch(x=pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), WIDTH))


def is_block(tensor, number):
    """Whether the tensor on the device is that of the block. The device compares."""
    expected = torch.arange(tensor.numel(), dtype=torch.int32, device=tensor.device) + number * 7919
    return (tensor.flatten() == expected).all()


@pytest.fixture
def fed(files):
    """A function that feeds `count` blocks from a thread, with a data set on the device: (data, task, thread)."""
    made = []

    def make(count, batch_size=None, elements=ELEMENTS):
        block = (elements + 1) * WIDTH * 4
        (files.folder / "mapped-files.conf").write_text(f"{files.paths[0]} ring={RING} block={block}\n")
        data = Dataset(files.folder, 0, columns=["x"], batch_size=batch_size or elements, timeout=60).to("cuda")
        data._opened()
        task = Task(*files.paths)

        def supply_all():
            # A test may end its data set before.
            with contextlib.suppress(BrokenPipeError):
                for number in range(count):
                    task.supply(rows_of_block(number, elements))
                task.end_of_epoch()

        thread = threading.Thread(target=supply_all, daemon=True)
        thread.start()
        made.append((data, task, thread))
        return data

    yield make
    for data, task, thread in made:
        data.abort("the test has ended")
        thread.join()
        task.leave()


def torn(data):
    """The numbers of blocks that have arrived with other bytes. The device begins each copy late."""
    copies = data._copies
    begin = copies._begin

    def begin_late(*arguments):
        with torch.cuda.stream(copies._stream):
            torch.cuda._sleep(LATE)
        return begin(*arguments)

    copies._begin = begin_late
    right = [is_block(each["x"], number) for number, each in enumerate(data)]
    return [number for number, is_right in enumerate(right) if not bool(is_right)]


# Blocks of 1 MiB, each copied alone, and of 48 KiB, up to 80 together.
@pytest.mark.parametrize("count, elements", [(40, ELEMENTS), (500, 3)], ids=["large", "small"])
def test_no_batch_is_torn_if_copies_begin_late(fed, count, elements):
    data = fed(count, elements=elements)
    assert torn(data) == []


@pytest.mark.parametrize("count, elements", [(40, ELEMENTS), (500, 3)], ids=["large", "small"])
def test_the_test_above_finds_slots_that_are_returned_before_their_copies(fed, count, elements):
    data = fed(count, elements=elements)
    real = data._copies._begin

    def begin(*arguments):
        begun = real(*arguments)
        # As if the order of release were wrong: Spark gets the slot while the copy still waits.
        data._copies._pending.clear()
        return begun

    data._copies._begin = begin
    assert len(torn(data)) > 0


def test_batches_are_right_while_the_program_is_slow_and_keeps_some(fed):
    """What it has not kept is read late, too: its memory must not be used again before."""
    data = fed(60)
    kept, right = [], []
    for number, each in enumerate(data):
        torch.cuda._sleep(LATE // 10)
        right.append(is_block(each["x"], number))
        if number % 7 == 0:
            kept.append((number, each["x"]))
    assert all(map(bool, right)) and len(right) == 60
    assert all(bool(is_block(tensor, number)) for number, tensor in kept) and len(kept) == 9


def test_batches_on_another_stream(fed):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        right = [is_block(each["x"], number) for number, each in enumerate(fed(40))]
    stream.synchronize()
    assert all(bool(each) for each in right) and len(right) == 40


def test_small_blocks_are_copied_together_and_keep_their_values(fed):
    data = fed(1000, elements=3)
    kept, right, places = [], [], set()
    for number, each in enumerate(data):
        right.append(is_block(each["x"], number))
        places.add(each["x"].untyped_storage().data_ptr())
        if number % 10 == 0:
            kept.append((number, each["x"]))
    assert all(map(bool, right)) and all(bool(is_block(tensor, number)) for number, tensor in kept)
    assert len(places) < 500


@pytest.mark.parametrize("batch_size", [2, 3, 7])
def test_streams_that_change_between_and_inside_blocks(fed, batch_size):
    """Batches of several blocks and of parts of blocks, each on another stream, whose work is late."""
    data = fed(300, batch_size=batch_size, elements=3)
    streams, batches, right = [torch.cuda.Stream() for _ in range(3)], iter(data), []
    for number in range(900 // batch_size):
        with torch.cuda.stream(streams[number % 3]):
            torch.cuda._sleep(LATE // 100)
            found = next(batches)["x"]
            row = torch.arange(number * batch_size, number * batch_size + len(found), device=found.device)
            first = row // 3 * 7919 + row % 3 * WIDTH
            expected = torch.arange(WIDTH, dtype=torch.int32, device=found.device) + first.unsqueeze(1)
            right.append((found == expected).all())
            del found
    torch.cuda.synchronize()
    assert all(map(bool, right))


def test_streams_that_change_inside_a_block(fed):
    data = fed(40, batch_size=ELEMENTS // 4)
    begin = data._copies._begin

    def begin_late(*arguments):
        with torch.cuda.stream(data._copies._stream):
            torch.cuda._sleep(LATE)
        return begin(*arguments)

    data._copies._begin = begin_late
    streams, batches, right = [torch.cuda.Stream() for _ in range(3)], iter(data), []
    for number in range(4 * 40):
        with torch.cuda.stream(streams[number % 3]):
            quarter = next(batches)["x"].flatten()
            expected = torch.arange(len(quarter), dtype=torch.int32, device=quarter.device) + quarter_start(number)
            right.append((quarter == expected).all())
    torch.cuda.synchronize()
    assert all(map(bool, right))


def quarter_start(number):
    return number // 4 * 7919 + number % 4 * (ELEMENTS // 4 * WIDTH)


def test_memory_of_device_and_host_is_short(fed):
    """The device has room for some blocks, so each block's memory is used again at once. The host's pages are fought
    for by a thread that allocates and pins."""
    total = torch.cuda.get_device_properties(0).total_memory
    ends = threading.Event()

    def press():
        while not ends.is_set():
            pressed = [torch.ones(32 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(4)]
            pressed.append(torch.ones(256 << 20, dtype=torch.uint8))
            del pressed

    presser = threading.Thread(target=press)
    presser.start()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (48 << 20)) / total)
    try:
        right = [bool(is_block(each["x"], number)) for number, each in enumerate(fed(300))]
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        ends.set()
        presser.join()
    assert all(right) and len(right) == 300


def test_a_device_without_memory_is_an_error(fed):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1) / total)
    try:
        data = fed(3)
        with pytest.raises(RuntimeError, match="out of memory"):
            list(data)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_batch_outlives_its_pair(files):
    (files.folder / "mapped-files.conf").write_text(f"{files.paths[0]} ring={RING} block={BLOCK}\n")
    data = Dataset(files.folder, 0, columns=["x"], batch_size=ELEMENTS, timeout=60).to("cuda")
    data._opened()
    task = Task(*files.paths)
    task.supply(rows_of_block(3))
    kept = next(iter(data))["x"]
    data.abort("the test has ended")
    task.leave()
    del data
    torch.cuda.synchronize()
    assert bool(is_block(kept, 3))


@pytest.mark.parametrize("side", ["rank", "task"])
def test_a_killed_side(files, side):
    """A rank that is killed amid its copies leaves a ring that the next rank can use; a killed task is an error."""
    (files.folder / "mapped-files.conf").write_text(f"{files.paths[0]} ring={RING} block={BLOCK}\n")
    command = [sys.executable, str(PROGRAM)]
    rank = subprocess.Popen(
        [*command, "rank", str(files.folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until("the rank", files.is_open)
    task = subprocess.Popen([*command, "task", *map(str, files.paths)], stderr=subprocess.PIPE, text=True)
    try:
        assert rank.stdout is not None and rank.stdout.readline() == "20 batches are right\n"
        (rank if side == "rank" else task).kill()
        out, error = rank.communicate(timeout=120)
        if side == "rank":
            assert rank.returncode == -signal.SIGKILL
        else:
            # Another task may come, so the rank waits for its limit. It has checked all batches that it got.
            assert rank.returncode == 1 and "SupplyTimeoutError" in error and "wrong" not in out + error
    finally:
        rank.kill()
        task.kill()
        rank.wait()
        task.communicate()
    data = Dataset(files.folder, 0, columns=["x"], batch_size=ELEMENTS, timeout=60).to("cuda")
    data._opened()
    next_task = Task(*files.paths)
    next_task.supply(rows_of_block(5))
    assert bool(is_block(next(iter(data))["x"], 5))
    data.abort("the test has ended")
    next_task.leave()


def test_tensors_of_the_device_as_results(fed):
    x = next(iter(fed(1)))["x"].float()
    array = array_of("x", x, None)
    assert str(array.type) == f"fixed_size_list<item: float not null>[{WIDTH}]"
    assert array.to_pylist() == x.tolist()


@pytest.mark.parametrize("library", ["cupy", "jax"])
def test_other_libraries_take_the_same_memory(fed, library):
    """And their arrays are results."""
    x = next(iter(fed(1)))["x"]
    if library == "cupy":
        array = pytest.importorskip("cupy", reason="no cupy here").from_dlpack(x)
        assert array.data.ptr == x.data_ptr()
    else:
        array = pytest.importorskip("jax", reason="no jax (make test-trainers)").dlpack.from_dlpack(x)
        assert array.unsafe_buffer_pointer() == x.data_ptr()
    assert array_of("x", array + 1, None).to_pylist() == (x + 1).tolist()
    assert torch.from_dlpack(array).data_ptr() == x.data_ptr()
