"""SupplyDataset(pin_memory=...): a batch keeps its slot of the ring until the device has copied it."""

import threading

import pyarrow
import pytest
import supply

from foreign_file import ForeignFile
from task import Task
from values import numbers

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
from supply.torch import SupplyDataset  # noqa: E402

BLOCKS_OF_RING = 4


class Event:
    """An event that is done when the test says so, or when a caller waits for it."""

    done = False

    def query(self):
        return self.done

    def synchronize(self):
        self.done = True


class Stream:
    """A stream with the copies of the test. It has recorded these events."""

    def __init__(self):
        self.events = []

    def record_event(self):
        self.events.append(Event())
        return self.events[-1]


@pytest.fixture
def pinned(files, monkeypatch):
    """A data set with a stream of the test, and its task. Without a CUDA device the ring cannot be registered."""
    monkeypatch.setattr("supply.pinned.require_device", lambda: None)
    monkeypatch.setattr("supply.pinned.pin_ring", lambda *_: lambda: None)
    stream = Stream()
    data = SupplyDataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, zero_copy=True, pin_memory=stream)
    data._opened()
    task = Task(*files.paths)
    yield data, task, stream
    data.abort("the test has ended")
    task.leave()


def supply_blocks(task, count):
    for block in range(count):
        task.supply(numbers(4 * block))


def test_a_batch_keeps_its_slot_until_it_is_copied(pinned):
    data, task, stream = pinned
    supply_blocks(task, 3)
    batches = iter(data)
    batch = next(batches)
    batch = next(batches)
    assert batch["x"].tolist() == [4, 5, 6, 7] and task.header("released") == 0
    stream.events[0].done = True
    batch = next(batches)
    assert batch["x"].tolist() == [8, 9, 10, 11] and task.header("released") == 1


def test_the_last_batch_of_a_broken_off_iteration_keeps_its_slot(pinned):
    data, task, stream = pinned
    supply_blocks(task, 1)
    batches = iter(data)
    batch = next(batches)
    del batches
    assert len(stream.events) == 1 and batch["x"].tolist() == [0, 1, 2, 3]
    del batch
    assert task.header("released") == 0


def test_a_full_ring_waits_for_the_oldest_copy(pinned):
    data, task, stream = pinned
    count = 2 * BLOCKS_OF_RING
    supplying = threading.Thread(target=lambda: [supply_blocks(task, count), task.end_of_epoch()])
    supplying.start()
    assert [batch["x"][0].item() for batch in data] == list(range(0, 4 * count, 4))
    supplying.join()
    assert len(stream.events) == count and stream.events[0].done


def test_batches_that_the_program_keeps_are_an_error(pinned):
    data, task, _ = pinned
    supply_blocks(task, BLOCKS_OF_RING)
    with pytest.raises(supply.AllHeldError, match="a view of 'x'"):
        list(data)


@pytest.mark.parametrize("end", [SupplyDataset.close, lambda data: None], ids=["close", "drop"])
def test_a_ring_is_unregistered_after_its_copies_and_before_its_pair_ends(files, monkeypatch, end):
    stream = Stream()
    seen = []
    unpin = lambda: seen.extend([stream.events[0].done, files.remaining()])  # noqa: E731
    monkeypatch.setattr("supply.pinned.require_device", lambda: None)
    monkeypatch.setattr("supply.pinned.pin_ring", lambda *_: unpin)
    data = SupplyDataset(files.folder, 0, columns=["x"], batch_size=4, zero_copy=True, pin_memory=stream)
    data._opened()
    task = Task(*files.paths)
    supply_blocks(task, 1)
    next(iter(data))
    end(data)
    del data
    assert seen == [True, ["pair.mapped", "pair.request", "pair.notification"]] and files.remaining() == []
    task.leave()


def test_copies_ask_for_pinned_memory(files, tmp_path, monkeypatch):
    monkeypatch.setattr("supply.pinned.require_device", lambda: None)
    monkeypatch.setattr("supply.pinned.pin_ring", lambda *_: lambda: None)
    asked, real_empty = [], torch.empty

    def empty(*shape, pin_memory=False, **options):
        asked.append(pin_memory)
        return real_empty(*shape, **options)

    monkeypatch.setattr(torch, "empty", empty)
    data = SupplyDataset(
        files.folder, 0, columns=["x", "y"], batch_size=3, timeout=30, zero_copy=True, pin_memory=Stream(),
        ragged={"x": "jagged"}, dtypes={"y": torch.float64},
    )  # fmt: skip
    data._opened()
    task = Task(*files.paths)
    values = [b"a value in place", b"short", b"another value in place"]
    rows = {"x": pyarrow.array(values, pyarrow.binary_view()), "y": pyarrow.array([1, 2, 3], "int32")}
    task.supply(pyarrow.record_batch(rows), foreign_file=ForeignFile(tmp_path / "foreign", values, [16] * 3))
    got = next(iter(data))
    assert bytes(got["x"].values.tolist()) == b"".join(values) and got["x"].offsets.tolist() == [0, 16, 21, 43]
    assert got["y"].tolist() == [1, 2, 3] and got["y"].dtype == torch.float64
    assert asked == [True] * 3
    data.abort("the test has ended")
    task.leave()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("zero_copy", [False, True])
def test_pin_without_a_device(files, zero_copy):
    data = SupplyDataset(files.folder, 0, columns=["x"], batch_size=4, zero_copy=zero_copy, pin_memory=True)
    for _ in range(2):
        with pytest.raises(supply.SupplyError, match="pin_memory=True: .* no CUDA device"):
            next(iter(data))
        assert files.remaining() == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_copies_that_a_device_starts_late(files):
    data = SupplyDataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, zero_copy=True, pin_memory=True)
    data._opened()
    task = Task(*files.paths)
    count = 10 * BLOCKS_OF_RING
    supplying = threading.Thread(target=lambda: [supply_blocks(task, count), task.end_of_epoch()])
    supplying.start()
    copies = []
    for batch in data:
        torch.cuda._sleep(100_000_000)
        copies.append(batch["x"].to("cuda", non_blocking=True))
    supplying.join()
    assert [copy.tolist() for copy in copies] == [list(range(4 * block, 4 * block + 4)) for block in range(count)]
    data.abort("the test has ended")
    task.leave()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_values_in_place_are_copied_to_pinned_memory(files, tmp_path):
    data = SupplyDataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, zero_copy=True, pin_memory=True)
    data._opened()
    task = Task(*files.paths)
    values = [bytes(range(first, first + 24)) for first in range(0, 80, 20)]
    rows = pyarrow.record_batch({"x": pyarrow.array(values, pyarrow.binary_view())})
    task.supply(rows, foreign_file=ForeignFile(tmp_path / "foreign", values, [16] * 4))
    task.end_of_epoch()
    [got] = data
    assert got["x"].is_pinned() and [bytes(row.tolist()) for row in got["x"]] == values
    data.abort("the test has ended")
    task.leave()
