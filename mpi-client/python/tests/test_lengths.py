"""len() of a Dataset and of an Epoch, and equal steps without an all_reduce for each batch."""

import concurrent.futures
import math

import pytest
import spark_supplier
from spark_supplier.torch import Dataset
from torch.utils.data import DataLoader

from feeding import announce, numbers_of, supply_blocks, supply_epochs
from task import Task

ELEMENTS = 10


@pytest.fixture
def counted(files):
    """A function that makes a data set of two epochs. Spark announces this number of elements (None: no number)."""
    made = []

    def make(announced=ELEMENTS, state=None, **options):
        data = Dataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, **options)
        if state is not None:
            data.load_state_dict(state)
        data._opened()
        task = Task(*files.paths)
        made.append((data, task))
        if announced is not None:
            announce(task, announced)
        supply_blocks(task, [ELEMENTS - task.header("start_element")])
        task.end_of_epoch()
        supply_blocks(task, [ELEMENTS], epoch=1)
        task.end_of_epoch(1)
        return data

    yield make
    for data, task in made:
        data.abort("the test has ended")
        task.leave()


@pytest.mark.parametrize("uneven, length", [("keep", 3), ("drop", 2), ("pad", 3)])
def test_lengths(counted, uneven, length):
    data = counted(uneven=uneven)
    with pytest.raises(TypeError, match=r"call begin\(\) before len\(\)"):
        len(data)
    assert data.begin() and data.begin()
    assert len(data) == len(DataLoader(data, batch_size=None)) == length
    assert len(list(data)) == length, "begin() has waited for the epoch, but has not left it"
    epoch = next(data.epochs())
    assert epoch.number == 1 and len(epoch) == length == len(list(epoch))


def test_a_length_that_is_not_known(counted):
    data = counted(announced=None)
    epoch = next(data.epochs())
    for unknown in (data, epoch):
        with pytest.raises(TypeError, match="Spark has not counted"):
            len(unknown)
    assert len(list(epoch)) == math.ceil(ELEMENTS / 4)


def test_the_rest_of_an_epoch_has_no_length(counted):
    state = {"version": 1, "position": "position-1:0:1:0:4:0000000000000077"}
    epochs = counted(state=state, uneven="drop").epochs()
    rest = next(epochs)
    with pytest.raises(TypeError):
        len(rest)
    assert numbers_of(rest) == [[4, 5, 6, 7]]
    assert len(next(epochs)) == 2


def test_fewer_batches_than_announced_are_an_error(counted):
    data = counted(announced=16, uneven="drop")
    with pytest.raises(spark_supplier.SupplyError, match="this rank got 2 full batches, but Spark announced 4"):
        list(data)


@pytest.mark.parametrize("uneven, elements", [("keep", 8), ("drop", ELEMENTS), ("pad", 8)])
def test_a_loop_over_the_known_length_gets_the_end_of_the_epoch(files, uneven, elements):
    """As Lightning's, which does not ask for one batch more. So the pair closes without an error for Spark."""
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4, timeout=30, uneven=uneven)
    with concurrent.futures.ThreadPoolExecutor() as threads, data:
        data._opened()
        task = threads.submit(supply_epochs, files, [elements], epochs=2, is_counted=True)
        for number in range(2):
            data.begin()
            batches = iter(data)
            assert len([next(batches) for _ in range(len(data))]) == 2
            assert data.state_dict() == {"version": 1, "position": data._opened().ended_epoch_position}
            assert data._opened().ended_epoch == number
        data.close()
        task.result()
