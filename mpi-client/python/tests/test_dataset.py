"""spark_supplier.torch.Dataset: batches across blocks, epochs, saved states, equal numbers of steps."""

import copy
import pickle
import subprocess
import sys
import threading

import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier.torch import DataLoader as OwnLoader
from spark_supplier.torch import Dataset, Epoch
from torch.utils.data import DataLoader

from feeding import announce, numbers_of, supply_blocks, supply_epochs
from layout import ROOT
from pair_files import PairFiles
from task import wait_until


def test_batches_across_blocks(dataset):
    data = dataset([3, 6, 1, 4])
    assert numbers_of(data) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13]]


def test_zero_copy_batches_within_a_block_are_views(dataset):
    data = dataset([8], zero_copy=True)
    start, size = data._opened().mapping
    assert [start < batch["x"].data_ptr() < start + size for batch in data] == [True, True]


def test_batches_are_writable_and_hold_no_block(dataset):
    data = dataset([4] * 20)
    kept = list(data)
    kept[0]["x"].add_(1)
    assert len(kept) == 20 and kept[0]["x"].tolist() == [1, 2, 3, 4]


def test_batches_larger_than_the_ring(dataset):
    assert numbers_of(dataset([2] * 15, batch_size=100)) == [list(range(30))]


def test_batches_that_occupy_the_ring_are_an_error(dataset):
    data = dataset([4] * 5, epochs=2, zero_copy=True)
    batches = iter(data)
    held = [next(batches) for _ in range(4)]
    with pytest.raises(spark_supplier.RingFullError, match="block 0: a view of 'x'; block 1: a view of 'x'.*zero_copy"):
        next(batches)
    del held
    assert len(numbers_of(data)) == 5, "the next epoch"


def test_epochs(dataset):
    data = dataset([4], epochs=3)
    for epoch in range(3):
        data.set_epoch(epoch)
        assert numbers_of(data) == [[0, 1, 2, 3]]
    with pytest.raises(spark_supplier.SupplyError, match="ended after epoch 2.*--epochs"):
        next(iter(data))


def test_epochs_to_the_end_of_the_data(dataset):
    data = dataset([4, 2], epochs=3)
    assert [(epoch.number, numbers_of(epoch)) for epoch in data.epochs()] == [
        (number, [[0, 1, 2, 3], [4, 5]]) for number in range(3)
    ]
    assert list(data.epochs()) == []
    with pytest.raises(
        spark_supplier.SupplyError,
        match="the data has ended after epoch 2: .*Each loop over it is an epoch: set --epochs",
    ):
        next(iter(data))


def test_an_epoch_is_read_once(dataset):
    epochs = dataset([4], epochs=2).epochs()
    first = next(epochs)
    second = next(epochs)
    with pytest.raises(spark_supplier.SupplyError, match="epoch 0 can be read once"):
        next(iter(first))
    assert numbers_of(second) == [[0, 1, 2, 3]]
    with pytest.raises(spark_supplier.SupplyError, match="epoch 1 can be read once"):
        next(iter(second))


def test_the_rest_of_an_epoch_that_is_left(dataset):
    firsts = []
    for epoch in dataset([4, 4], epochs=3).epochs():
        for batch in epoch:
            firsts.append((epoch.number, batch["x"].tolist()))
            break
    assert firsts == [(number, [0, 1, 2, 3]) for number in range(3)]


def test_epochs_that_are_skipped(dataset):
    data = dataset([4, 4], epochs=4)
    next(iter(data))
    assert numbers_of(data) == [[0, 1, 2, 3], [4, 5, 6, 7]], "a broken off iteration is not resumed"
    data.set_epoch(3)
    assert numbers_of(data) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_skipped_block_is_not_held(opened):
    data, task = opened()
    data.set_epoch(1)
    got = []
    waiting = threading.Thread(target=lambda: got.extend(numbers_of(data)))
    waiting.start()
    supply_blocks(task, [4], epoch=0)
    wait_until("the release of the only block", lambda: task.header("released") == 1)
    task.end_of_epoch(0)
    supply_blocks(task, [3], epoch=1)
    task.end_of_epoch(1)
    waiting.join()
    assert got == [[0, 1, 2]]


def test_an_epoch_that_has_passed(dataset):
    data = dataset([4], epochs=2)
    list(data)
    data.set_epoch(0)
    with pytest.raises(spark_supplier.SupplyError, match="epoch 0 has passed: the next one is 1"):
        next(iter(data))
    assert numbers_of(data) == [[0, 1, 2, 3]], "it is still there"


@pytest.mark.parametrize("uneven, expected", [
    ("keep", [[0, 1, 2, 3], [4, 5]]), ("drop", [[0, 1, 2, 3]]), ("pad", [[0, 1, 2, 3], [4, 5]]),
])  # fmt: skip
def test_the_last_batch(dataset, uneven, expected):
    data = dataset([6], epochs=2, uneven=uneven)
    assert [numbers_of(data), numbers_of(data)] == [expected, expected]


def test_the_state_is_what_was_consumed(dataset):
    data = dataset([6, 6], epochs=2, uneven="drop")
    assert data.state_dict() == {"version": 1, "position": None}
    positions = []
    for _ in DataLoader(data, batch_size=None):
        positions.append(data.state_dict()["position"])
    position = "position-1:0:1:0:{}:0000000000000077".format
    assert positions == [position(4), position(8), position(12)]
    assert data.state_dict()["position"] == "position-1:1:0:0:0:0000000000000077", "the epoch has ended"
    del _
    assert len(numbers_of(data)) == 3


@pytest.mark.parametrize("first_epoch", [0, 2])
def test_a_stream_that_is_stopped_in_the_middle_of_an_epoch(opened, first_epoch):
    data, task = opened()
    if first_epoch:
        task.end_of_epoch(first_epoch - 1)
        assert numbers_of(data) == []
    supply_blocks(task, [6], first_epoch)
    task.end_of_data(first_epoch)
    assert numbers_of(data) == [[0, 1, 2, 3], [4, 5]]
    assert data.state_dict()["position"] == f"position-1:{first_epoch}:1:0:6:0000000000000077"
    with pytest.raises(spark_supplier.SupplyError, match=f"ended in the middle of epoch {first_epoch}: .*query.stop"):
        next(iter(data))
    task.confirm_end()
    data.close()


def test_a_stream_that_is_stopped_before_its_first_epoch(opened):
    data, task = opened()
    task.end_of_data()
    with pytest.raises(spark_supplier.SupplyError, match="the data has ended: .*query.stop"):
        next(iter(data))
    task.confirm_end()
    data.close()


def test_the_state_has_the_batch_that_pad_repeats(dataset):
    data = dataset([4, 2], epochs=2, uneven="pad")
    next(iter(data))
    assert data.state_dict()["last"]["x"].tolist() == [0, 1, 2, 3], "an iteration that was broken off"
    for _ in data:
        state = data.state_dict()
    assert state["last"]["x"].tolist() == [4, 5]
    assert "last" not in data.state_dict(), "the epoch has ended"
    other = Dataset(columns=["x"], batch_size=4, uneven="pad")
    other.load_state_dict(state)
    assert other.state_dict()["last"]["x"].tolist() == [4, 5]


def take_iterator(data):
    return iter(data)


def take_epoch(data):
    return iter(next(data.epochs()))


def take_arrow(data):
    return iter(pyarrow.RecordBatchReader.from_stream(next(data.epochs())))


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("take", [take_iterator, take_epoch, take_arrow])
def test_a_second_loop_over_one_data_set_names_itself(dataset, take, zero_copy):
    data = dataset([6] * 8, epochs=2, zero_copy=zero_copy)
    first = take(data)
    next(first)
    second = iter(data)
    assert next(second)["x"].tolist() == [0, 1, 2, 3]
    with pytest.raises(
        (spark_supplier.SupplyError, pyarrow.ArrowException), match="another loop over this data set has begun"
    ):
        next(first)
    assert len(numbers_of(second)) == 11, "it has not lost a batch to the other loop"


def test_questions_neither_wait_nor_begin_an_epoch(files, monkeypatch):
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, uneven="pad")
    monkeypatch.setattr(data, "_begin", lambda: pytest.fail("it has begun an epoch"))
    monkeypatch.setattr(data, "_open", lambda: pytest.fail("it has opened the pair"))
    for each in (data, OwnLoader(data), Epoch(data, 0)):
        assert each
        with pytest.raises(TypeError, match="not known"):
            len(each)
    assert not data.closed and data.columns == ["x"] and data.statistics() == []
    with pytest.raises(TypeError, match="not known"):
        torch.utils.data.DistributedSampler(data, 2, 0)


def test_a_data_set_is_neither_copied_nor_pickled(dataset):
    data = dataset([4])
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(spark_supplier.SupplyError, match="cannot be copied or pickled"):
            make(data)
    assert numbers_of(data) == [[0, 1, 2, 3]]


@pytest.mark.parametrize("epoch", ["x", 1.5, None, -1, True])
def test_an_epoch_that_is_no_number(epoch):
    with pytest.raises(spark_supplier.ConfigError, match="epoch is"):
        Dataset(columns=["x"], batch_size=4).set_epoch(epoch)


@pytest.mark.slow
@pytest.mark.parametrize("forms", [{}, {"transform": lambda batch: batch["x"]}, {"collate_fn": len}])
@pytest.mark.parametrize("of_epoch", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_of_batches_are_refused(dataset, forms, of_epoch, workers):
    data = dataset([4], **forms)
    source = next(data.epochs()) if of_epoch else data
    with pytest.raises(spark_supplier.ConfigError, match="a Dataset yields whole batches"):
        next(iter(DataLoader(source, num_workers=workers)))
    # A collate_fn of the program takes what it likes.
    assert len(list(DataLoader(source, num_workers=workers, collate_fn=list))) == 1


@pytest.mark.parametrize("option", ["drop_last", "shuffle", "sampler", "batch_sampler"])
def test_options_of_a_loader_that_spark_has_name_uneven(option):
    with pytest.raises(spark_supplier.ConfigError, match=f"{option}: .*uneven='drop'"):
        OwnLoader(Dataset(columns=["x"], batch_size=4), **{option: [0]})  # type: ignore[arg-type]


@pytest.mark.parametrize("uneven, sizes", [("pad", [4, 10, 6]), ("drop", [4, 9, 6]), ("keep", [4, 10, 6])])
def test_a_later_epoch_with_more_rows_loses_none(opened, uneven, sizes):
    data, task = opened(uneven=uneven)
    announce(task, sizes[0])
    for epoch, size in enumerate(sizes):
        supply_blocks(task, [size], epoch)
        task.end_of_epoch(epoch)
        left = size % 4 if uneven == "drop" else 0
        assert [x for batch in numbers_of(data) for x in batch] == list(range(size - left))
    assert (data._steps.repeated, data._steps.left_out) == (0, 3 if uneven == "drop" else 0)


def test_resuming(opened):
    state = {"version": 1, "position": "position-1:5:1:0:8:0000000000000077"}

    def load(data):
        data.load_state_dict(state)
        assert data.state_dict() == state
        return data

    data, task = opened(load)
    assert (task.header("start_epoch"), task.header("start_element")) == (5, 8)
    with pytest.raises(spark_supplier.SupplyError, match="too late"):
        data.load_state_dict(state)


def test_batches_through_a_data_loader(dataset):
    assert numbers_of(DataLoader(dataset([6]), batch_size=None)) == [[0, 1, 2, 3], [4, 5]]


def test_shapes_that_change_within_a_batch(opened):
    data, task = opened()
    for length in (3, 5):
        task.supply(
            pyarrow.record_batch(
                [pyarrow.array([b"x" * length] * 2)], schema=pyarrow.schema([pyarrow.field("x", "binary", False)])
            )
        )
    with pytest.raises(spark_supplier.SupplyError, match=r"column 'x': an element has shape \(5,\)"):
        next(iter(data))


def steps_of_two_ranks(pairs, sizes, folder, uneven, is_counted=False):
    """The steps of two ranks, and their numbers of all_reduces. Each gets a block of that size, or none if it is 0."""
    (folder / "store").unlink(missing_ok=True)
    ranks = [
        subprocess.Popen(
            [
                sys.executable,
                ROOT / "mpi-client/python/tests/equal_steps_rank.py",
                str(rank),
                pair.folder,
                folder / "store",
                uneven,
                folder / f"state-{rank}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, pair in enumerate(pairs)
    ]
    for pair, size in zip(pairs, sizes):
        wait_until("the rank", pair.is_open)
        feeding = (pair, [size] if size else [], 1, is_counted)
        threading.Thread(target=supply_epochs, args=feeding, daemon=True).start()
    outputs = [rank.communicate(timeout=90)[0].strip() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    all_reduces, steps = zip(*(output.split(" ", 1) for output in outputs))
    return list(steps), list(map(int, all_reduces))


@pytest.fixture
def two_pairs(files):
    (files.folder / "1").mkdir(mode=0o700)
    second = PairFiles(files.folder / "1")
    yield [files, second]
    assert second.remaining() == []


@pytest.mark.parametrize("is_counted", [False, True])
@pytest.mark.parametrize("uneven, expected", [
    ("drop", ["[0, 1, 2, 3]"] * 2),
    ("pad", ["[0, 1, 2, 3] [4, 5, 6, 7] [8, 9]", "[0, 1, 2, 3] [4, 4, 4, 4] [4, 4]"]),
])  # fmt: skip
def test_two_ranks_make_the_same_number_of_steps(tmp_path, two_pairs, uneven, expected, is_counted):
    steps, all_reduces = steps_of_two_ranks(two_pairs, (10, 5), tmp_path, uneven, is_counted)
    assert steps == expected
    # One for the epoch, and one for its end. Unless Spark has counted the elements, one for the first steps: a rank has
    # all full batches in its first block.
    assert all_reduces == [2 if is_counted else 3] * 2


@pytest.mark.parametrize("is_counted", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_rank_without_elements_repeats_those_of_another(tmp_path, two_pairs, is_counted):
    steps, _ = steps_of_two_ranks(two_pairs, (0, 10), tmp_path, "pad", is_counted)
    assert steps == ["[0, 1, 2, 3] [0, 1, 2, 3] [0, 1]", "[0, 1, 2, 3] [4, 5, 6, 7] [8, 9]"]
    # Its state has what it repeats.
    rest, _ = steps_of_two_ranks(two_pairs, (0, 2), tmp_path, "pad")
    assert rest == ["[0, 1]", "[8, 9]"]


@pytest.mark.parametrize("elements, repeated", [(5, "[4, 4]"), (1, "[0, 0]")])
def test_a_rank_resumes_after_its_last_element(tmp_path, two_pairs, elements, repeated):
    whole, _ = steps_of_two_ranks(two_pairs, (10, elements), tmp_path, "pad")
    rest, _ = steps_of_two_ranks(two_pairs, (2, 0), tmp_path, "pad")
    assert rest == ["[8, 9]", repeated]
    assert [steps.endswith(f"] {last}") for steps, last in zip(whole, rest)] == [True, True]


@pytest.mark.parametrize("name", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_equal_steps_need_a_group_of_the_ranks(dataset, monkeypatch, name):
    data = dataset([6], epochs=2, uneven="drop")
    monkeypatch.setenv(name, "2")
    with pytest.raises(spark_supplier.SupplyError, match="need torch.distributed for 2 ranks"):
        next(iter(data))
    # The nearest launcher counts.
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert numbers_of(data) == [[0, 1, 2, 3]]


# Rank 1 takes no batch, so rank 0 waits for it.
STUCK_RANK = """
import sys, torch.distributed
from spark_supplier.torch import Dataset
rank, folder, store = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
with Dataset(folder, 0, columns=["x"], batch_size=4, uneven="pad", timeout=10) as dataset:
    if rank == "1":
        sys.stdin.read()
    try:
        next(iter(dataset))
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.long
def test_the_wait_for_a_stuck_rank_ends(tmp_path, two_pairs):
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", STUCK_RANK, str(rank), pair.folder, tmp_path / "store"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for rank, pair in enumerate(two_pairs)
    ]  # fmt: skip
    try:
        wait_until("the rank", two_pairs[0].is_open)
        threading.Thread(target=supply_epochs, args=(two_pairs[0], [8], 1), daemon=True).start()
        output, _ = ranks[0].communicate(timeout=90)
        assert output.startswith("SupplyTimeoutError another rank has not taken its next batch or epoch")
    finally:
        ranks[0].kill()
        ranks[1].communicate(timeout=90)
