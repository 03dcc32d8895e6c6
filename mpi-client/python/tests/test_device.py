"""Dataset.to("cuda"): blocks are copied to the device ahead of the loop, and keep their slots until then.

Without a CUDA device a stand-in takes its place. It shows when slots are returned, and when copies begin. It cannot
show that bytes arrive while a real device copies late: test_device_copies has that, and needs a GPU (make test-gpu).
"""

import contextlib
import threading

import pyarrow
import pytest
import spark_supplier

from foreign_file import ForeignFile
from pair_files import PairFiles
from task import Task
from values import batch, numbers

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
from spark_supplier.torch import DataLoader, Dataset  # noqa: E402

BLOCKS_OF_RING = 4
WITHOUT_A_DEVICE = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


class Event:
    """An event that is done when the test says so, or when a caller waits for it."""

    done = False

    def query(self):
        return self.done

    def synchronize(self):
        self.done = True


class Stream:
    """A stream that copies at once. It has recorded these events, and waits for those."""

    def __init__(self, *_):
        self.events = []
        self.waits_for = []

    def record_event(self):
        self.events.append(Event())
        return self.events[-1]

    def synchronize(self):
        for event in self.events:
            event.synchronize()

    def wait_event(self, event):
        self.waits_for.append(event)


class StandIn:
    """What spark_supplier.device uses of torch.cuda, with the host's memory for the device's."""

    def __init__(self, status=0):
        self.registered, self.status = [], status
        self.copying, self.current = Stream(), Stream()

    def install(self, monkeypatch):
        names = {
            "is_available": lambda: True, "current_device": lambda: 0, "Stream": lambda _: self.copying,
            "current_stream": lambda _: self.current, "set_stream": lambda _: None, "set_device": lambda _: None,
            "device": contextlib.nullcontext, "cudart": lambda: self,
        }  # fmt: skip
        for name, value in names.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr("spark_supplier.torch.cuda_device", lambda _: torch.device("cpu", 0))
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
        real = torch.empty
        monkeypatch.setattr(torch, "empty", lambda *shape, pin_memory=False, **options: real(*shape, **options))

    def cudaHostRegister(self, address, size, flags):
        self.registered.append((address, size, flags))
        return self.status

    def cudaHostUnregister(self, address):
        [(begin, _, _)] = self.registered
        assert begin == address
        self.registered.clear()


@pytest.fixture
def device(monkeypatch):
    """The stand-in, whose events the test controls."""
    stand_in = StandIn()
    stand_in.install(monkeypatch)
    return stand_in


@pytest.fixture
def fed(files, request):
    """A function that makes a data set: (data set, task). It is on a CUDA device, or else on the stand-in."""
    if not torch.cuda.is_available():
        request.getfixturevalue("device")
    opened = request.getfixturevalue("opened")

    def make(ring="64KiB", block="16KiB", **options):
        (files.folder / "mapped-files.conf").write_text(f"{files.paths[0]} ring={ring} block={block}\n")
        return opened(lambda data: data.to("cuda"), **options)

    return make


def supply_blocks(task, count, begin=0):
    for block in range(begin, begin + count):
        task.supply(numbers(4 * block))


@WITHOUT_A_DEVICE
def test_a_slot_is_returned_when_the_copy_is_done(fed, device):
    data, task = fed()
    supply_blocks(task, 2)
    batches = iter(data)
    kept = [next(batches)]
    assert task.header("released") == 0
    device.copying.events[0].done = True
    kept.append(next(batches))
    # The program keeps the batch of the first block: the device has its own copy.
    assert task.header("released") == 1
    assert [each["x"].tolist() for each in kept] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    kept[0]["x"].zero_()
    assert kept[1]["x"].tolist() == [4, 5, 6, 7]


@WITHOUT_A_DEVICE
def test_blocks_that_are_there_are_copied_ahead(fed, device):
    data, task = fed(batch_size=2)
    supply_blocks(task, BLOCKS_OF_RING)
    batches = iter(data)
    assert next(batches)["x"].tolist() == [0, 1] and len(device.copying.events) == 3
    assert next(batches)["x"].tolist() == [2, 3] and len(device.copying.events) == 3
    assert next(batches)["x"].tolist() == [4, 5] and len(device.copying.events) == 4
    # The loop's stream waits for the copies of what it was handed, and for no others.
    assert device.current.waits_for == device.copying.events[:2]


@WITHOUT_A_DEVICE
def test_small_blocks_are_copied_together(fed, device):
    data, task = fed(ring="64KiB", block="4KiB")
    supply_blocks(task, 8)
    batches = iter(data)
    kept = [next(batches)["x"] for _ in range(8)]
    assert len(device.copying.events) == 1 and task.header("released") == 0
    device.copying.events[0].done = True
    supply_blocks(task, 1, begin=8)
    assert next(batches)["x"].tolist() == [32, 33, 34, 35] and task.header("released") == 8
    assert [each.tolist() for each in kept] == [list(range(4 * number, 4 * number + 4)) for number in range(8)]
    # They share memory, and nothing else.
    assert len({each.storage().data_ptr() for each in kept}) == 1
    kept[0].zero_()
    assert kept[1].tolist() == [4, 5, 6, 7] and kept[1]._version == 0 and not kept[1]._is_view()


@WITHOUT_A_DEVICE
def test_what_lies_between_blocks_is_copied_if_it_is_little(fed, device):
    data, task = fed(ring="2MiB", block="128KiB")
    supply_blocks(task, 8)
    batches = iter(data)
    kept = [next(batches)["x"] for _ in range(8)]
    assert len(device.copying.events) == 1 and len({each.storage().data_ptr() for each in kept}) == 8


@WITHOUT_A_DEVICE
def test_one_slot_is_left_to_spark(fed, device):
    data, task = fed(ring="32KiB", block="4KiB")
    supply_blocks(task, 8)
    batches = iter(data)
    assert next(batches)["x"][0] == 0 and len(data._copies._pending[0][1]) == 5
    for _ in range(3):
        next(batches)
    # Two are begun, so the rest is.
    assert [len(tensors) for _, tensors in data._copies._pending] == [5, 3]


@pytest.mark.parametrize("batch_size", [3, 4, 10])
def test_many_small_blocks(fed, batch_size):
    """Around the ring, with batches of several blocks and of parts of blocks."""
    data, task = fed(ring="64KiB", block="4KiB", batch_size=batch_size)
    count = 100

    def supply_all():
        for block in range(count):
            task.supply(batch(x=(range(4 * block, 4 * block + 4), "int64")), first_element=4 * block)
        task.end_of_epoch()

    supplying = threading.Thread(target=supply_all)
    supplying.start()
    got = [each["x"] for each in data]
    supplying.join()
    assert torch.cat(got).tolist() == list(range(4 * count))


def test_a_batch_is_handed_out_without_waiting_for_the_next_block(fed):
    data, task = fed()
    supply_blocks(task, 1)
    batches = iter(data)
    assert next(batches)["x"].tolist() == [0, 1, 2, 3]
    supply_blocks(task, 1, begin=1)
    assert next(batches)["x"].tolist() == [4, 5, 6, 7]


def test_a_failure_of_spark_comes_after_the_blocks_before_it(fed):
    data, task = fed()
    supply_blocks(task, 2)
    task.fail("the source has failed")
    batches = iter(data)
    assert [next(batches)["x"][0].item() for _ in range(2)] == [0, 4]
    with pytest.raises(spark_supplier.SparkError, match="the source has failed"):
        next(batches)


def test_an_error_of_a_block_comes_after_the_blocks_before_it(fed):
    data, task = fed()
    task.write_schema(pyarrow.schema([pyarrow.field("x", pyarrow.int64())]))
    supply_blocks(task, 1)
    task.supply(batch(x=([1, None, 3, 4], "int64")), first_element=4)
    batches = iter(data)
    assert next(batches)["x"].tolist() == [0, 1, 2, 3]
    with pytest.raises(spark_supplier.ColumnError, match="1 of 4 elements are null"):
        next(batches)


@WITHOUT_A_DEVICE
def test_a_full_ring_waits_for_the_oldest_copy(fed, device):
    data, task = fed()
    count = 3 * BLOCKS_OF_RING
    supplying = threading.Thread(target=lambda: [supply_blocks(task, count), task.end_of_epoch()])
    supplying.start()
    assert [batch["x"][0].item() for batch in data] == list(range(0, 4 * count, 4))
    supplying.join()
    assert len(device.copying.events) == count and device.copying.events[0].done


def test_a_loop_that_is_left_skips_what_was_copied_ahead(fed):
    data, task = fed()
    supply_blocks(task, 3)
    for _ in next(data.epochs()):
        break

    def supply_the_rest():
        task.end_of_epoch()
        task.supply(numbers(100), epoch=1)
        task.end_of_epoch(1)

    supplying = threading.Thread(target=supply_the_rest)
    supplying.start()
    [got] = next(data.epochs())
    supplying.join()
    assert got["x"].tolist() == [100, 101, 102, 103]


def test_positions_are_those_of_the_batches_that_were_handed_out(fed, tmp_path):
    def positions(data, task):
        supply_blocks(task, 1)
        task.supply(numbers(4), first_element=4)
        found = []
        for _ in zip(range(4), data):
            found.append(data.state_dict()["position"])
        return found

    on_host = PairFiles(tmp_path)
    data = Dataset(on_host.folder, 0, columns=["x"], batch_size=2, timeout=30)
    data._opened()
    task = Task(*on_host.paths)
    expected = positions(data, task)
    data.abort("the test has ended")
    task.leave()
    assert positions(*fed(batch_size=2)) == expected and len(set(expected)) == 4


def test_lists_structs_and_maps(fed):
    kind = pyarrow.struct([("x", "int32"), ("t", pyarrow.list_(pyarrow.list_(pyarrow.int32()))), ("w", "string")])
    scores = pyarrow.map_(pyarrow.int32(), pyarrow.float32())
    rows = [{"x": i, "t": [[i] * i, []], "w": str(i)} for i in range(6)]
    options = {"ragged": {"s": "pad"}, "nulls": {"l": "mask"}, "dtypes": {"l": torch.int64}}
    data, task = fed(columns=["s", "m", "l", "s.x"], **options)
    for first in (0, 3):
        part = rows[first : first + 3]
        task.supply(
            batch(
                s=(part, kind),
                m=([[(row["x"], 0.5)] for row in part], scores),
                l=([None, [1, None], [row["x"] for row in part]], pyarrow.list_(pyarrow.int32())),
            ),
            first_element=first,
        )
    task.end_of_epoch()
    first, last = data
    assert first["s"]["x"].tolist() == first["s.x"].tolist() == [0, 1, 2, 3] and last["s"]["w"] == ["4", "5"]
    assert first["s"]["t"].shape == (4, 2, 3) and last["s"]["t"][1, 0].tolist() == [5] * 5
    assert last["m"]["keys"].values.tolist() == [4, 5] and last["m"]["values"].offsets.tolist() == [0, 1, 2]
    assert first["l"].values.tolist() == [1, 0, 0, 1, 2] and first["l"].offsets.tolist() == [0, 0, 2, 5, 5]
    assert first["l"].values.dtype == torch.int64 and last["l_mask"].values.tolist() == [True, False, True, True, True]


@pytest.mark.parametrize("ring", ["64KiB", "256KiB"], ids=["each block", "blocks together"])
def test_types_of_columns(fed, tmp_path, ring):
    data, task = fed(
        columns=["number", "float", "bit", "text", "jagged", "null", "foreign"],
        batch_size=2,
        ring=ring,
        dtypes={"float": torch.float64},
        ragged={"jagged": "jagged"},
        nulls={"null": "mask"},
    )
    values = [bytes(range(first, first + 24)) for first in range(0, 80, 20)]
    rows = batch(
        number=(range(4), "int16"), float=([0.5, 1, 1.5, 2], "float32"), bit=([True, False, True, True], "bool"),
        text=(["a", "", "ccc", "d"], "string"), jagged=([b"", b"12", b"3", b"456"], "binary"),
        null=([7, None, 9, None], "int64"),
        foreign=pyarrow.array(values, pyarrow.binary_view()),
    )  # fmt: skip
    more = batch(
        number=([7, 8], "int16"), float=([7.5, 8], "float32"), bit=([False, False], "bool"),
        text=(["x", "y"], "string"), jagged=([b"x", b"yz"], "binary"), null=([1, 2], "int64"),
        foreign=pyarrow.array(values[1:3], pyarrow.binary_view()),
    )  # fmt: skip
    foreign = ForeignFile(tmp_path / "foreign", values, [16] * 4)
    task.supply(rows, foreign_file=foreign)
    task.supply(more, first_element=4, foreign_file=foreign)
    task.end_of_epoch()
    *got, last = data
    assert last["number"].tolist() == [7, 8] and last["float"].tolist() == [7.5, 8]
    assert last["bit"].tolist() == [False, False] and last["text"] == ["x", "y"]
    assert bytes(last["jagged"].values.tolist()) == b"xyz" and last["jagged"].offsets.tolist() == [0, 1, 3]
    assert last["null"].tolist() == [1, 2] and last["null_mask"].tolist() == [True, True]
    assert [bytes(row.tolist()) for row in last["foreign"]] == values[1:3]
    assert [each["number"].tolist() for each in got] == [[0, 1], [2, 3]]
    assert [each["float"].tolist() for each in got] == [[0.5, 1], [1.5, 2]] and got[0]["float"].dtype == torch.float64
    assert [each["bit"].tolist() for each in got] == [[True, False], [True, True]]
    assert [each["text"] for each in got] == [["a", ""], ["ccc", "d"]]
    assert [each["null_mask"].tolist() for each in got] == [[True, False]] * 2 and got[1]["null"].tolist() == [9, 0]
    assert [bytes(row.tolist()) for each in got for row in each["foreign"]] == values
    jagged = [each["jagged"] for each in got]
    assert [bytes(each.values.tolist()) for each in jagged] == [b"12", b"3456"]
    assert [each.offsets.tolist() for each in jagged] == [[0, 0, 2], [0, 1, 4]]


def test_batches_over_several_blocks(fed):
    data, task = fed(batch_size=6, uneven="pad")
    supply_blocks(task, 2)
    task.end_of_epoch()
    assert [each["x"].tolist() for each in data] == [list(range(6)), [6, 7]]


@WITHOUT_A_DEVICE
@pytest.mark.parametrize("end", [Dataset.close, lambda data: None], ids=["close", "drop"])
def test_a_ring_is_unregistered_after_its_copies_and_before_its_pair_ends(files, device, end):
    seen = []
    real = device.cudaHostUnregister
    device.cudaHostUnregister = lambda at: seen.extend([device.copying.events[0].done, files.remaining(), real(at)])
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4).to("cuda")
    data._opened()
    [(_, size, flags)] = device.registered
    assert (size, flags) == (64 << 10, 8)
    task = Task(*files.paths)
    supply_blocks(task, 1)
    next(iter(data))
    end(data)
    del data
    assert seen == [True, ["pair.mapped", "pair.request", "pair.notification"], None] and files.remaining() == []
    task.leave()


@WITHOUT_A_DEVICE
def test_a_ring_that_cannot_be_registered(files, monkeypatch):
    StandIn(status=2).install(monkeypatch)
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4).to("cuda")
    for _ in range(2):
        with pytest.raises(
            spark_supplier.SupplyError, match=r"cudaHostRegister of 65536 bytes failed with CUDA error 2: .*ulimit -l"
        ):
            next(iter(data))
        assert files.remaining() == []


@WITHOUT_A_DEVICE
def test_workers_and_a_device(fed):
    data, task = fed()
    supply_blocks(task, 1)
    with pytest.raises(spark_supplier.SupplyError, match="leave num_workers out"):
        next(iter(DataLoader(data, num_workers=1)))


def test_a_device_that_comes_too_late(fed):
    data, task = fed()
    supply_blocks(task, 1)
    next(iter(data))
    with pytest.raises(spark_supplier.SupplyError, match="too late"):
        data.to("cpu")


@WITHOUT_A_DEVICE
def test_without_a_device(files):
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4)
    with pytest.raises(spark_supplier.SupplyError, match=r"to\('cuda'\): PyTorch .* finds no CUDA device"):
        data.to("cuda")
    with pytest.raises(spark_supplier.SupplyError, match="'cuda' and 'cpu' only"):
        data.to("meta")
    assert data.to("cpu") is data and files.remaining() == []
