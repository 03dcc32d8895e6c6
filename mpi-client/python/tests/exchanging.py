"""Rows of several ranks, and tasks that supply them."""

import concurrent.futures
import threading

import pyarrow
import spark_supplier

from layout import CONSTANTS, put
from pair_files import PairFiles
from task import Task
from thread_transport import Mail, ThreadTransport

RANKS = 2

SCHEMA = pyarrow.schema(
    [
        pyarrow.field("id", "int64", False),
        pyarrow.field("user", "int32", False),
        pyarrow.field("text", "string", False),
        pyarrow.field("point", pyarrow.list_(pyarrow.float32(), 3), False),
        pyarrow.field("flag", "bool", False),
        pyarrow.field("weight", "float64", True),
    ]
)


def row(number):
    """What an element has in each column."""
    return {
        "id": number,
        "user": number % 7,
        "text": "x" * (number % 5) + str(number),
        "point": [number / 2, -1.0, float(number)],
        "flag": number % 3 == 0,
        "weight": None if number % 4 == 0 else number / 4,
    }


def ids_of(rank, count):
    """The elements that Spark gives to a rank."""
    return range(1000 * rank, 1000 * rank + count)


class RankLeft(Exception):
    """The rank has stopped before the end of the data."""


class LeavingTask(Task):
    """Does not wait for a rank that has left."""

    def header(self, field):
        if self.failure_of_rank():
            raise RankLeft
        return super().header(field)


def feed(files, rank, sizes, epochs=1, announces=False):
    """A task that supplies blocks of these sizes in each epoch, from the rank's position on."""
    task = LeavingTask(*files.paths)
    try:
        if announces:
            fields = {"exchange": CONSTANTS["EXCHANGE_ALL"], "exchange_seed": 5}
            put(task.memory, "mapped_file_header", exchange_fraction=CONSTANTS["EXCHANGE_FRACTION_UNIT"], **fields)
        for epoch in range(task.header("start_epoch"), epochs):
            first = task.header("start_element") if epoch == task.header("start_epoch") else 0
            end = 0
            for size in sizes:
                end += size
                if end > first:
                    rows = [row(number) for number in ids_of(rank, end)[first:]]
                    task.supply(pyarrow.RecordBatch.from_pylist(rows, SCHEMA), epoch, first_element=first)
                    first = end
            task.end_of_epoch(epoch)
        task.end_of_data(epochs - 1)
        task.confirm_end()
    except (RankLeft, BrokenPipeError):
        pass
    finally:
        task.leave()


def feeding(*arguments, **options):
    """The thread of feed(), which has begun."""
    thread = threading.Thread(target=feed, args=arguments, kwargs=options, daemon=True)
    thread.start()
    return thread


def rows_of(block):
    """By Arrow, and by numpy where it has the column."""
    rows = pyarrow.record_batch(block).to_pylist()
    assert block.numpy("id").tolist() == [row["id"] for row in rows]
    return rows


def epochs_of(supply):
    """The rows of each epoch."""
    epochs = []
    while not supply.at_end_of_data:
        epochs.append([row for block in supply.epoch() for row in rows_of(block)])
    return epochs[:-1]


def make_files(folder, rank, ring="16KiB", block="4KiB"):
    folder = folder / f"rank-{rank}"
    folder.mkdir()
    return PairFiles(folder, ring, block)


def on_ranks(ranks, function):
    """What function(rank) returns on each rank, in threads at the same time."""
    with concurrent.futures.ThreadPoolExecutor(ranks) as threads:
        return [call.result() for call in [threads.submit(function, rank) for rank in range(ranks)]]


def check_all_once(sizes, epochs_by_rank, epochs):
    """Every element has reached exactly one rank in each epoch, with its values."""
    everything = [row(number) for rank, its in enumerate(sizes) for number in ids_of(rank, sum(its))]
    for epoch in range(epochs):
        received = [row for epochs in epochs_by_rank for row in epochs[epoch]]
        assert sorted(received, key=lambda row: row["id"]) == everything


def opener(ranks, exchange, transport=ThreadTransport, **options):
    """A function that opens the rank's pair."""
    mail = Mail(RANKS)

    def open_rank(rank, **more):
        comm = transport(mail, rank)
        options_of_rank = {"exchange": exchange, "comm": comm, "timeout": 30, **options, **more}
        return spark_supplier.ranks.open(ranks[rank].folder, 0, rank=rank, **options_of_rank)

    return open_rank


def receive(ranks, exchange, sizes, epochs=1, announces=False, **options):
    """What each rank receives in each epoch."""
    open_rank = opener(ranks, exchange, **options)

    def run(rank):
        with open_rank(rank) as s:
            task = feeding(ranks[rank], rank, sizes[rank], epochs, announces)
            received = epochs_of(s)
        task.join()
        return received

    return on_ranks(RANKS, run)
