"""Limits of threads, as control groups of both versions have them, and what a run says that meets one."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from spark_supplier.limits import is_of_thread_limit, thread_limit

PROGRAM = pathlib.Path(__file__).with_name("thread_limits_program.py")
# By version: of the process, its group's folder, and one above it that a container sees.
VERSIONS = {
    "2": ("0::/pods/one\n", "sys/fs/cgroup/pods/one", "sys/fs/cgroup/pods"),
    "2 in a container": ("0::/\n", "sys/fs/cgroup", "sys/fs/cgroup"),
    "1": ("5:cpu,pids:/pods/one\n0::/\n", "sys/fs/cgroup/pids/pods/one", "sys/fs/cgroup/pids/pods"),
    "1 in a container": ("5:pids:/docker/c0ffee\n", "sys/fs/cgroup/pids", "sys/fs/cgroup/pids"),
    "both": ("5:pids:/one\n0::/two\n", "sys/fs/cgroup/unified/two", "sys/fs/cgroup/pids/one"),
}


def write(root, folder, limit, used):
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / "pids.max").write_text(f"{limit}\n", encoding="utf-8")
    (root / folder / "pids.current").write_text(f"{used}\n", encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_group_of_which_the_least_is_left(tmp_path, version):
    of_process, own, above = VERSIONS[version]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(of_process, encoding="utf-8")
    root = str(tmp_path)
    assert thread_limit(root) is None
    write(tmp_path, own, "max", 30)
    assert thread_limit(root) is None
    write(tmp_path, own, 1000, 100)
    found = thread_limit(root)
    assert found is not None and found[:2] == (900, 1000)
    write(tmp_path, above, 500, 450)
    found = thread_limit(root)
    assert found is not None and found[:2] == (50, 500) and "podPidsLimit" in found[2]


def test_errors_of_the_limit():
    assert is_of_thread_limit(RuntimeError("can't start new thread"))
    assert not is_of_thread_limit(RuntimeError("another one"))
    with pytest.raises(BlockingIOError) as raised:
        os.read(_empty_pipe(), 1)
    assert not is_of_thread_limit(raised.value)


def _empty_pipe():
    read, _ = os.pipe()
    os.set_blocking(read, False)
    return read


@pytest.fixture
def group():
    """A control group of this machine, version 1 or 2, that limits threads."""
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        made = pathlib.Path(root, f"supply-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            made.mkdir()
            if (made / "pids.max").exists():
                break
            made.rmdir()
    else:
        pytest.skip("this user may make no control group with a limit of threads")
    yield made
    for folder in (made / "below", made):
        end = time.monotonic() + 20
        while folder.exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
            assert time.monotonic() < end, f"{folder} has processes"
            time.sleep(0.05)


@pytest.mark.long
def test_a_rank_that_meets_a_limit(group):
    """It names the limit."""
    words = ["sh", "-c", 'echo $$ >"$1/cgroup.procs" && exec "$2" "$3" "$1"', "sh", group, sys.executable, PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, cwd=PROGRAM.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^RankError: .*rank 0 on .* failed:", done.stdout, re.MULTILINE), done.stdout
    assert "can't start new thread" in done.stdout and f"pids.max of {group / 'below'}" in done.stdout
