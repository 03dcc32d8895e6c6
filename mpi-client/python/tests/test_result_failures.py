"""Results of ranks that are killed, or that find no space."""

import os
import pathlib
import resource
import signal
import subprocess
import sys

import pytest
import spark_supplier

from result_file import abort_reason, read_result
from task import wait_until

# Writes a block after the other until it is killed.
WRITER = """
import spark_supplier
with spark_supplier.ranks.open("{folder}", 0, timeout=30) as s, s.results("scores", "id long, text string") as out:
    while True:
        out.write({{"id": range(100), "text": ["x" * 100] * 100}})
        print(out.rows, flush=True)
"""


def test_a_rank_is_killed_while_it_writes(files):
    rank = subprocess.Popen(
        [sys.executable, "-c", WRITER.format(folder=files.folder)], stdout=subprocess.PIPE, text=True
    )
    assert rank.stdout is not None
    assert [rank.stdout.readline() for _ in range(10)][-1] == "1000\n"
    rank.send_signal(signal.SIGKILL)
    rank.wait()
    sealed = pathlib.Path(f"{files.paths[0]}.scores.result")
    unsealed = pathlib.Path(f"{sealed}.unsealed")
    assert unsealed.exists() and not sealed.exists()
    with pytest.raises(AssertionError):
        abort_reason(sealed)

    again = spark_supplier.ranks.open(files.folder, 0, timeout=30)
    assert not unsealed.exists()
    with again.results("scores") as out:
        out.write({"id": [1]})
    assert read_result(sealed)["id"].to_pylist() == [1]
    again.abort("the test has ended")


# Writes a block and forks a worker, which prints its process id when it has left the result to its parent.
FORKING = """
import os, spark_supplier, time
s = spark_supplier.ranks.open("{folder}", 0, timeout=30)
out = s.results("scores", "id long")
out.write({{"id": [1]}})
if os.fork() == 0:
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_a_killed_rank_leaves_no_result_to_a_child(files):
    rank = subprocess.Popen(
        [sys.executable, "-c", FORKING.format(folder=files.folder)], stdout=subprocess.PIPE, text=True
    )
    assert rank.stdout is not None
    child = int(rank.stdout.readline())
    rank.send_signal(signal.SIGKILL)
    rank.wait()
    try:
        again = spark_supplier.ranks.open(files.folder, 0, timeout=30)
        again.abort("the test has ended")
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_file_system_that_is_full(files):
    """The limit of the process stands for it, because not every machine lets a test mount one."""
    program = WRITER.format(folder=files.folder)
    rank = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300 << 10, 300 << 10)),
    )  # fmt: skip
    _, error = rank.communicate(timeout=60)
    assert rank.returncode == 1
    last = error.splitlines()[-1]
    assert last.startswith("spark_supplier.errors.NoSpaceError: result ") and "may write files of 307200" in last
    assert abort_reason(f"{files.paths[0]}.scores.result") == f"NoSpaceError: {last.split(': ', 1)[1]}"
    wait_until("the end of the pair", lambda: files.remaining() == [])
