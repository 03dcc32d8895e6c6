"""How a pair ends: close(), abort(), Ctrl-C, a forked child, Python's exit."""

import contextlib
import ctypes
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pyarrow
import pytest
import spark_supplier

from feeding import supply_blocks
from task import Task, wait_until
from values import numbers


def test_close_waits_for_the_end_of_the_data(open_pair):
    rank, task = open_pair(ring=3 * 16384)
    task.supply(numbers(0))
    task.end_of_epoch()
    task.end_of_data()
    kept = [block.numpy("x") for block in rank.epoch()]
    ending = threading.Thread(target=task.confirm_end)
    ending.start()
    rank.close()
    ending.join()
    assert kept[0].tolist() == [0, 1, 2, 3]


def test_close_ends_on_an_idle_stream(files):
    """Tasks attach and leave as long as the stream is idle, and each time the timeout starts again."""
    rank = spark_supplier.ranks.open(files.folder, 0, timeout=0.5)
    task = Task(*files.paths)
    task.end_of_epoch()
    assert rank.next_block() is None
    closing = threading.Thread(target=rank.close)
    closing.start()

    def signal_life():
        if not closing.is_alive():
            return True
        # close() may end meanwhile.
        with contextlib.suppress(FileNotFoundError):
            Task(*files.paths).leave()
        return False

    task.leave()
    wait_until("close()", signal_life)
    assert files.remaining() == []


def of_reader(pair, files):
    rank, task = pair
    task.supply(numbers(5))
    block, blocks = rank.next_block(), iter(rank)
    uses = [lambda: block.numpy("x"), lambda: pyarrow.record_batch(block), rank.next_block, lambda: next(blocks)]
    return rank, [*uses, rank.is_ready, lambda: list(rank), lambda: rank.position, rank.results]


def of_result(pair, files):
    out = pair[0].results("scores", "x long")
    return out, [lambda: out.write({"x": [1]}), lambda: out.write(pyarrow.record_batch({"x": [1]}))]


def of_result_alone(pair, files):
    out = spark_supplier.ranks.create_results("scores", "x long", files.folder, 0)
    return out, [lambda: out.write({"x": [1]})]


def of_data_set(data):
    from spark_supplier.torch import DataLoader

    loader = DataLoader(data)
    uses = [lambda: next(iter(data)), lambda: next(data.epochs()), data.begin, lambda: next(iter(loader)), data.results]
    return data, uses


def of_new_data_set(pair, files):
    from spark_supplier.torch import Dataset

    pair[0].abort("its files are for another one")
    return of_data_set(Dataset(files.folder, 0, columns=["x"], batch_size=2))


def of_open_data_set(pair, files):
    """In its loop, and in an epoch."""
    data, uses = of_new_data_set(pair, files)
    data._opened()
    pair[1].leave()
    task = Task(*files.paths)
    pair[1].leave = task.leave
    supply_blocks(task, [4])
    epoch = next(data.epochs())
    batches = iter(epoch)
    next(batches)
    return data, [*uses, lambda: next(batches), lambda: next(iter(epoch))]


@pytest.mark.parametrize("end", ["close", "abort"])
@pytest.mark.parametrize("make", [
    of_reader, of_result, of_result_alone, of_new_data_set,
    of_open_data_set,
])  # fmt: skip
def test_what_is_closed_stays_closed_and_says_so_at_once(pair, files, make, end):
    handle, uses = make(pair, files)
    assert handle and not handle.closed
    for _ in range(2):
        handle.close() if end == "close" else handle.abort("the test ends it")
        assert handle and handle.closed
    for use in [*uses, handle.__enter__]:
        with pytest.raises(spark_supplier.SupplyError, match="closed|sealed or aborted"):
            use()
    for path in files.folder.glob("**/*.result"):
        path.unlink()


def test_a_reader_at_its_end_is_closed_too(open_pair):
    rank, task = open_pair()
    task.end_of_epoch()
    task.end_of_data()
    assert list(rank) == [] and rank.next_block() is None
    ending = threading.Thread(target=task.confirm_end)
    ending.start()
    rank.close()
    ending.join()
    for use in (rank.next_block, rank.is_ready, lambda: list(rank)):
        with pytest.raises(spark_supplier.SupplyError, match="closed"):
            use()


def test_an_exception_in_a_with_block_is_sent_to_spark(pair):
    rank, task = pair
    with pytest.raises(ZeroDivisionError), rank:
        raise ZeroDivisionError("division by zero")
    assert task.failure_of_rank() == "ZeroDivisionError: division by zero"


def test_an_exception_whose_text_is_not_utf_8_is_sent_to_spark(pair):
    """As of a file whose name is in another encoding (PEP 383)."""
    rank, task = pair
    with pytest.raises(FileNotFoundError), rank:
        raise FileNotFoundError("no file gr\udcf6\udcdfe")
    assert task.failure_of_rank() == r"FileNotFoundError: no file gr\udcf6\udcdfe"


def test_a_supply_that_is_not_closed_leaves_no_files(files):
    program = "import sys, spark_supplier\nkept = spark_supplier.ranks.open(sys.argv[1], 0)\nsys.kept = kept"
    subprocess.run([sys.executable, "-c", program, str(files.folder)], check=True, timeout=60)
    assert files.remaining() == []


def test_close_fails_if_the_task_does_not_confirm_the_end(open_pair):
    rank, task = open_pair(timeout=0.2)
    task.end_of_epoch()
    task.end_of_data()
    assert list(rank) == []
    with pytest.raises(spark_supplier.SupplyTimeoutError):
        rank.close()
    assert rank.closed


class Program:
    """A program in a process of its own. It gets the folder of the config files, and prints `ready` before it waits."""

    def __init__(self, files, text):
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import os, sys, time, spark_supplier\n{text}", str(files.folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.lines = self.process.stdout
        self.stat = pathlib.Path(f"/proc/{self.process.pid}/stat")

    def is_asleep(self):
        return self.stat.read_text().rpartition(")")[2].split()[0] == "S"

    def interrupt(self):
        """Ctrl-C, as soon as the program waits."""
        assert self.lines.readline() == "ready\n"
        wait_until("the program's wait", self.is_asleep)
        self.process.send_signal(signal.SIGINT)

    def output(self):
        return self.process.communicate(timeout=60)


WAITS = {"next_block": "s.next_block()", "iteration": "list(s)", "with": "with s: list(s)"}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_ctrl_c_ends_a_wait_for_a_block(files, wait):
    rank = Program(
        files, f"s = spark_supplier.ranks.open(sys.argv[1], 0, timeout=600)\nprint('ready', flush=True)\n{wait}"
    )
    rank.interrupt()
    _, error = rank.output()
    assert rank.process.returncode == -signal.SIGINT and error.endswith("KeyboardInterrupt\n")
    assert files.remaining() == []


CLOSE = """
s = spark_supplier.ranks.open(sys.argv[1], 0, timeout=600)
assert list(s) == []
print('ready', flush=True)
try:
    s.close()
except KeyboardInterrupt:
    print('closed' if s.closed else 'open', flush=True)
"""


@pytest.mark.parametrize("end", ["s.abort('enough')", "s.close()", ""], ids=["abort", "close", "exit"])
def test_ctrl_c_ends_the_wait_of_close_which_can_be_repeated(files, end):
    rank = Program(files, CLOSE + end)
    wait_until("the pair", files.is_open)
    task = Task(*files.paths)
    task.end_of_epoch()
    task.end_of_data()
    rank.interrupt()
    assert rank.lines.readline() == "open\n"
    if end == "s.close()":
        task.confirm_end()
    _, error = rank.output()
    assert rank.process.returncode == 0, error
    assert files.remaining() == []
    task.leave()


def test_ctrl_c_in_a_with_block_closes(files):
    program = (
        "with spark_supplier.ranks.open(sys.argv[1], 0, timeout=600) as s:\n"
        "    assert list(s) == []\n    print('ready', flush=True)"
    )
    rank = Program(files, program)
    wait_until("the pair", files.is_open)
    task = Task(*files.paths)
    task.end_of_epoch()
    task.end_of_data()
    rank.interrupt()
    _, error = rank.output()
    assert rank.process.returncode == -signal.SIGINT and error.endswith("KeyboardInterrupt\n")
    assert files.remaining() == []
    task.leave()


# The second runs no handlers of forks, in C or in Python.
LIBC = ctypes.PyDLL(None)


@pytest.mark.parametrize("fork", [os.fork, getattr(LIBC, "_Fork", None)], ids=["fork", "_Fork"])
def test_a_forked_child_is_refused_and_changes_nothing(pair, fork):
    if fork is None:
        pytest.skip("this C library has no _Fork()")
    rank, task = pair
    task.supply(numbers(0))
    block = rank.next_block()
    view = block.numpy("x")
    read, write = os.pipe()
    child = fork()
    if child == 0:
        try:
            rank.next_block()
        except spark_supplier.SupplyError as error:
            os.write(write, f"{view.tolist()} {error}".encode())
        del block, view
        rank.close()
        gc.collect()
        os._exit(0)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert text.startswith("[0, 1, 2, 3] ")
    assert f"belongs to process {os.getpid()}" in text and "num_workers=0" in text
    assert task.header("released") == 0 and block.numpy("x").tolist() == [0, 1, 2, 3]


FORK = """
s = spark_supplier.ranks.open(sys.argv[1], 0)
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_a_forked_child_does_not_keep_a_dead_rank_alive(files):
    rank = Program(files, FORK)
    child = int(rank.lines.readline())
    try:
        with pytest.raises(spark_supplier.InUseError):
            spark_supplier.ranks.open(files.folder, 0)
        rank.process.kill()
        rank.process.wait()
        os.kill(child, 0)
        # Its lock is free, so the next rank replaces the stale pair.
        spark_supplier.ranks.open(files.folder, 0).abort("the test has ended")
    finally:
        os.kill(child, signal.SIGKILL)
        rank.process.communicate()
