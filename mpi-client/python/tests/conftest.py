"""A pair for each test: the rank is this process, the task is the test's own."""

import itertools
import os
import pathlib
import resource
import sys
import tempfile
import threading

import pytest
import spark_supplier

from ending import end_in_order
from exchanging import RANKS, make_files
from feeding import supply_epochs
from layout import ROOT
from pair_files import PairFiles
from rank_server import NUMBERS, compile_routines
from result_file import read_result
from supplier_session import prepare_environment, shared_memory, warm_calls
from task import Task

assert not pathlib.Path(spark_supplier.__file__).is_relative_to(ROOT / "mpi-client"), (
    "these tests are for the installed wheel, not for the sources"
)

prepare_environment()

# Fixtures that start a Spark, or ranks that are processes.
SLOW = {"spark", "server", "two_pairs"}


def pytest_configure():
    end_in_order()


def pytest_collection_modifyitems(items):
    """`make test-fast` leaves out what is slow. Ranks cannot import test modules, so they get functions by value."""
    for item in items:
        uses_spark = any(getattr(each, "__module__", "") == "supplier_session" for each in vars(item.module).values())
        # A module that has no session starts programs that do.
        if SLOW & set(item.fixturenames) or uses_spark and "spark" not in vars(item.module):
            item.add_marker("slow")
        if uses_spark and "pyspark" in sys.modules:
            sys.modules["pyspark"].cloudpickle.register_pickle_by_value(item.module)


@pytest.fixture
def memory():
    """A folder for the files of runs. At the end nothing is left of them."""
    with shared_memory() as folder:
        yield folder


@pytest.fixture(scope="module")
def warm(spark):
    """call(), with kept ranks. At the end of the module nothing is left."""
    with warm_calls() as called:
        yield called


@pytest.fixture
def files():
    """Checks at the end that no file of the pair is left."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir=folder) as name:
        made = PairFiles(pathlib.Path(name))
        yield made
        assert made.remaining() == []


@pytest.fixture
def open_pair(files):
    """A function that opens the rank's side and attaches a task: (supply, task). The fixture closes both."""
    opened = []

    def open_both(timeout=30, **options):
        rank = spark_supplier.ranks.open(files.folder, 0, timeout=timeout, **options)
        task = Task(*files.paths)
        opened.append((rank, task))
        return rank, task

    yield open_both
    for rank, task in opened:
        rank.abort("the test has ended")
        task.leave()


@pytest.fixture
def pair(open_pair):
    return open_pair()


@pytest.fixture
def rank(pair):
    return pair[0]


@pytest.fixture
def written(rank, files):
    """A function that writes batches as a result, and returns its table."""

    def write(*batches, schema=None):
        with rank.results("scores", schema) as out:
            for batch in batches:
                out.write(batch)
        path = pathlib.Path(f"{files.paths[0]}.scores.result")
        table = read_result(path)
        path.unlink()
        return table

    return write


@pytest.fixture
def opened(files):
    """A function that opens a Dataset and attaches a task: (data set, task). The fixture ends both."""
    from spark_supplier.torch import Dataset

    made = []

    def open_both(prepare=lambda data: data, **options):
        data = prepare(Dataset(files.folder, 0, **{"columns": ["x"], "batch_size": 4, "timeout": 30, **options}))
        data._opened()
        made.append((data, Task(*files.paths)))
        return made[-1]

    yield open_both
    for data, task in made:
        data.abort("the test has ended")
        task.leave()


@pytest.fixture
def batches_of_blocks(opened):
    """A function: the batches of an epoch with these blocks, which are record batches."""
    from spark_supplier.torch import DataLoader

    def batches(blocks, workers=0, **options):
        data, task = opened(**{"batch_size": 3, **options})
        first = 0
        for block in blocks:
            task.supply(block, first_element=first)
            first += len(block)
        task.end_of_epoch()
        return list(DataLoader(data, num_workers=workers) if workers else data)

    return batches


@pytest.fixture
def dataset(files):
    """A function that makes a Dataset of the column x and feeds it."""
    from spark_supplier.torch import Dataset

    made, feeding = [], []

    def make(sizes, epochs=1, **options):
        dataset = Dataset(files.folder, 0, **{"columns": ["x"], "batch_size": 4, "timeout": 30, **options})
        dataset._opened()
        made.append(dataset)
        feeding.append(threading.Thread(target=supply_epochs, args=(files, sizes, epochs), daemon=True))
        feeding[-1].start()
        return dataset

    yield make
    for dataset in made:
        dataset.close()
    for thread in feeding:
        thread.join()


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The folder with routines for ranks of supply-server."""
    return compile_routines(tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="module")
def numbers(spark):
    """spark: of the module."""
    return spark.range(0, NUMBERS, 1, 5).selectExpr(
        "id", "array(double(id), 1, id * id) as features", "id * 2 as twice"
    )


@pytest.fixture
def ranks():
    """The files of the pairs of all ranks of an exchange, of which nothing is left at the end."""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        made = [make_files(pathlib.Path(folder), rank) for rank in range(RANKS)]
        yield made
        assert [files.remaining() for files in made] == [[]] * RANKS


@pytest.fixture
def limit_files():
    """A function that lets this process open this number of files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def limit(more):
        free = itertools.filterfalse(
            {int(name) for name in os.listdir("/proc/self/fd")}.__contains__, itertools.count()
        )
        resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, more, None)), hard))

    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
