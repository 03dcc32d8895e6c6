"""A /dev/shm that is too small for the batches of DataLoader workers."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("small_memory_program.py")
SIZE = "has 64 MiB, and "
REMEDY = r"Make it larger \(docker run --shm-size=\.\.\., an emptyDir of medium Memory on Kubernetes\)"
LIMIT_SECONDS = 240


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the program says in a mount namespace of its own, where /dev/shm has 64 MiB, as in a container."""
    inside = 'mount -t tmpfs -o size=64m supply-test /dev/shm && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", inside, "sh"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    program = [*words, sys.executable, PROGRAM, tmp_path_factory.mktemp("pairs")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("loader", ["ours", "plain"])
def test_a_shared_memory_that_is_too_small_is_named(found, loader):
    assert found[f"small, {loader}"] == 20
    large = found[f"large, {loader}"]
    assert "2 DataLoader workers make 2 batches of 20.0 MiB each in advance, 80.0 MiB in all" in large
    growing = found[f"growing, {loader}"]
    assert "a batch of 70.0 MiB of a DataLoader worker has no space: /dev/shm on " in growing
    for text in (large, growing):
        assert SIZE in text and re.search(REMEDY, text)
