"""DataLoader(num_workers=...): the pair stays in this process, and workers transform its batches in order."""

import contextlib
import os
import pathlib
import pickle
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection

import pytest
import spark_supplier
import torch
from spark_supplier import workers
from spark_supplier.torch import DataLoader, Dataset
from spark_supplier.workers import packed, unpacked
from torch.utils.data import DataLoader as PLAIN  # noqa: N811

import worker_programs
from feeding import numbers_of, supply_blocks
from task import Task, wait_until

# A task that waits in vain fails in a thread of its own.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

LOADERS = pytest.mark.parametrize("loader", [PLAIN, DataLoader], ids=["PyTorch's", "ours"])


def load(loader, data, workers=2, **options):
    return loader(data, batch_size=None, num_workers=workers, **options)


def is_alive(process):
    return os.path.exists(f"/proc/{process}")


def servers():
    """The threads that answer workers."""
    return {thread for thread in threading.enumerate() if "serve" in thread.name}


@pytest.fixture
def supplied(opened):
    """A function that makes a data set, with blocks of these sizes: (data set, task). No end of the epoch follows."""

    def make(sizes, **options):
        data, task = opened(**options)
        supply_blocks(task, sizes)
        return data, task

    return make


@LOADERS
def test_workers_transform_in_order(dataset, loader):
    data = dataset([6] * 9, epochs=2, transform=worker_programs.doubled)
    for _ in range(2):
        batches = list(load(loader, data, 3, multiprocessing_context="fork"))
        assert numbers_of(batches) == [[2 * n for n in range(first, min(first + 4, 54))] for first in range(0, 54, 4)]
        processes = [batch["process"] for batch in batches]
        assert os.getpid() not in processes and len(set(processes)) == 3
        assert processes == [processes[number % 3] for number in range(len(batches))]
        wait_until("the end of the workers", lambda processes=processes: not any(map(is_alive, processes)))


def test_a_folder_too_long_for_sockets_is_named(files, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 76)))
    with pytest.raises(spark_supplier.SupplyError, match="shorter folder .* set TMPDIR to one of at most 75"):
        load(DataLoader, Dataset(files.folder, 0, columns=["x"], batch_size=4))


@pytest.mark.slow
def test_spawned_workers(dataset):
    data = dataset([4] * 3, transform=worker_programs.doubled)
    batches = list(load(DataLoader, data, multiprocessing_context="spawn"))
    assert numbers_of(batches) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22]]
    assert len({os.getpid(), *(batch["process"] for batch in batches)}) == 3
    assert data.state_dict()["position"] == "position-1:1:0:0:0:0000000000000077"


def test_without_workers_this_process_transforms(dataset):
    [batch] = load(DataLoader, dataset([4], transform=worker_programs.doubled), 0)
    assert batch["process"] == os.getpid()


@LOADERS
def test_batches_of_workers_are_writable_shared_memory(dataset, loader):
    batches = list(load(loader, dataset([8])))
    assert all(batch["x"].is_shared() for batch in batches)
    batches[0]["x"].add_(1)
    assert numbers_of(batches) == [[1, 2, 3, 4], [4, 5, 6, 7]]


@LOADERS
def test_order_with_a_slow_worker(dataset, loader):
    data = dataset([4] * 20, transform=worker_programs.slow)
    assert numbers_of(load(loader, data, 3)) == [list(range(first, first + 4)) for first in range(0, 80, 4)]


@LOADERS
def test_more_workers_than_batches(dataset, loader):
    data = dataset([4, 2], epochs=2)
    for epoch in data.epochs():
        assert numbers_of(load(loader, epoch, 4)) == [[0, 1, 2, 3], [4, 5]]


@LOADERS
def test_the_same_seed_for_each_epoch(dataset, loader):
    data = dataset([4, 2], epochs=4)
    for _ in range(2):
        torch.manual_seed(0)
        assert numbers_of(load(loader, data)) == [[0, 1, 2, 3], [4, 5]]
    for epoch in data.epochs():
        torch.manual_seed(0)
        assert numbers_of(load(loader, epoch)) == [[0, 1, 2, 3], [4, 5]]


@LOADERS
def test_persistent_workers(dataset, loader):
    data = dataset([4] * 3, epochs=3, transform=worker_programs.doubled)
    batches = load(loader, data, persistent_workers=True)
    epochs = [list(batches) for _ in range(3)]
    assert [len(epoch) for epoch in epochs] == [3] * 3
    assert len({batch["process"] for epoch in epochs for batch in epoch}) == 2


@pytest.mark.parametrize("uneven, last", [("keep", [[12, 13]]), ("drop", []), ("pad", [[12, 13]])])
def test_the_state_is_what_the_loop_was_handed(dataset, uneven, last):
    data = dataset([7, 7], epochs=2, uneven=uneven)
    position = "position-1:0:1:0:{}:0000000000000077".format
    loader = load(DataLoader, data)
    positions = []
    for _ in loader:
        state = loader.state_dict()
        positions.append(state["position"])
    assert positions[:3] == [position(4), position(8), position(12)] and len(positions) == 3 + len(last)
    assert ("last" in state) == (uneven == "pad")
    assert data.state_dict()["position"] == "position-1:1:0:0:0:0000000000000077"
    rest = iter(loader)
    next(rest)
    assert data.state_dict()["position"] == "position-1:1:1:0:4:0000000000000077"
    list(rest)
    with pytest.raises(spark_supplier.SupplyError, match="too late"):
        loader.load_state_dict(state)


def test_the_state_is_unknown_with_the_workers_of_another_loader(dataset):
    data = dataset([4] * 3, epochs=2)
    for epoch in data.epochs():
        if epoch.number == 1:
            assert data.state_dict()["position"] == "position-1:1:0:0:0:0000000000000077"
        for _ in load(PLAIN, epoch):
            with pytest.raises(spark_supplier.SupplyError, match="use spark_supplier.torch.DataLoader"):
                data.state_dict()
    assert data.state_dict()["position"] == "position-1:2:0:0:0:0000000000000077"


def test_an_error_of_the_transform_reaches_the_loop(supplied):
    data, _ = supplied([4] * 3, transform=worker_programs.failing)
    batches = iter(load(DataLoader, data))
    assert numbers_of([next(batches), next(batches)]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(ZeroDivisionError, match="in failing\n(.*\n)*.*the transform has failed"):
        next(batches)


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_loop(supplied):
    data, _ = supplied([4] * 3, transform=worker_programs.exiting)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(load(DataLoader, data))


@pytest.mark.slow
@LOADERS
def test_an_error_of_spark_reaches_the_loop(supplied, loader):
    data, task = supplied([4])
    batches = iter(load(loader, data))
    assert numbers_of([next(batches)]) == [[0, 1, 2, 3]]
    task.fail("the executor is gone")
    with pytest.raises(spark_supplier.SparkError, match="the executor is gone"):
        next(batches)


def test_an_error_that_cannot_be_pickled_keeps_its_text():
    class LocalError(Exception):
        pass

    with pytest.raises(spark_supplier.SupplyError, match="LocalError: the reason"):
        unpacked(pickle.loads(packed(LocalError("the reason"))))


@LOADERS
def test_a_loop_that_breaks_leaves_no_process_and_no_block(supplied, loader):
    data, task = supplied([40], transform=worker_programs.doubled)
    others = servers()
    for batch in load(loader, data):
        process = batch["process"]
        break
    wait_until("the end of the worker", lambda: not is_alive(process))
    wait_until("the release of the block", lambda: task.header("released") == 1)
    wait_until("the end of the threads", lambda: servers() <= others)
    task.end_of_epoch()
    supply_blocks(task, [4], epoch=1)
    task.end_of_epoch(1)
    assert numbers_of(load(loader, data)) == [[0, 2, 4, 6]], "the next epoch"


@pytest.mark.slow
@LOADERS
def test_close_while_workers_wait(supplied, loader):
    data, _ = supplied([4])
    batches = iter(load(loader, data))
    next(batches)
    data.abort("enough")
    with pytest.raises(spark_supplier.SupplyError, match="closed"):
        next(batches)


def test_the_loader_is_for_whole_batches(files):
    data = Dataset(files.folder, 0, columns=["x"], batch_size=4)
    with pytest.raises(ValueError, match="batch_size"):
        DataLoader(data, batch_size=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="in_order"):
        DataLoader(data, in_order=False)


def test_a_batch_size_of_another_loader_is_an_error(supplied):
    data, _ = supplied([4])
    with pytest.raises(ValueError, match="batch_size=None"):
        next(iter(PLAIN(data)))


RANK = """
import sys, worker_programs
from spark_supplier.torch import DataLoader, Dataset
data = Dataset(sys.argv[1], 0, columns=["x"], batch_size=4, timeout=60, transform=worker_programs.doubled)
data._opened()
processes = set()
for batch in DataLoader(data, num_workers=2):
    processes.add(batch["process"])
    if len(processes) == 2:
        print(*processes, flush=True)
"""


@pytest.mark.slow
def test_workers_of_a_rank_that_is_killed_end_and_do_not_keep_it_alive(files):
    command = [sys.executable, "-c", RANK, files.folder]
    rank = subprocess.Popen(command, cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    try:
        wait_until("the pair", files.is_open)
        task = Task(*files.paths)
        supply_blocks(task, [4, 4])
        assert rank.stdout is not None
        workers = rank.stdout.readline().split()
        assert len(workers) == 2 and all(map(is_alive, workers))
    finally:
        rank.kill()
        rank.wait()
    # The lock of the rank is free, so the next one replaces the stale pair.
    spark_supplier.ranks.open(files.folder, 0).abort("the test has ended")
    wait_until("the end of the workers", lambda: not any(map(is_alive, workers)))
    task.leave()


@pytest.fixture
def full_server(supplied, limit_files):
    """The address of a server that is out of files, and has a worker that waits for it."""
    data, _ = supplied([4])
    data._workers.listen()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(6)]
        limit_files(0)
        # One takes the file that accept() has reserved before the limit, and others those that threads of earlier tests
        # close now.
        for connection in connections:
            connection.connect(data._workers.address)
        connections[-1].settimeout(30)
        yield data._workers.address, connections[-1]


def test_a_worker_waits_for_a_free_file(full_server):
    _, waiting = full_server
    limit_of_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit_of_files[1], limit_of_files[1]))
    waiting.setblocking(True)
    with Connection(waiting.detach()) as worker:
        worker.send("not a greeting")
        worker.send_bytes(b"")
        assert worker.poll(30)


def test_a_worker_is_not_left_waiting_when_files_run_out(monkeypatch, full_server, caplog):
    monkeypatch.setattr(workers, "_RETRY_SECONDS", 0)
    address, waiting = full_server
    with contextlib.suppress(ConnectionResetError):
        assert waiting.recv(1) == b""
    assert "Too many open files" in caplog.text
    waiting.close()
    # The file that has become free may be taken by another thread.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(address)


def test_a_worker_is_not_left_waiting_when_no_thread_can_start(supplied, caplog):
    data, _ = supplied([4])
    data._workers.listen()
    # More than a process can address.
    threading.stack_size(1 << 46)
    try:
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.settimeout(30)
            waiting.connect(data._workers.address)
            assert waiting.recv(1) == b""
    finally:
        threading.stack_size(0)
    assert "can't start new thread" in caplog.text
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(data._workers.address)
