"""The GPUs, limits and settings of executors, in the ranks."""

import json
import os
import pathlib
import resource
import subprocess
import sys

import pytest

from supplier_session import prepare_environment, shared_memory

prepare_environment()
pytest.importorskip("pyspark")

PROGRAM = pathlib.Path(__file__).with_name("gpu_program.py")
LIMIT_SECONDS = 280


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the runs of the program return, or say."""
    discovery = tmp_path_factory.mktemp("gpus") / "discover"
    discovery.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["3", "5"]}'\n""")
    discovery.chmod(0o755)
    with shared_memory() as folder:
        done = subprocess.run(
            [sys.executable, PROGRAM, folder, discovery], capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_ranks_have_the_gpus_of_the_executors(found):
    cores = str(max(1, len(os.sched_getaffinity(0)) // 2))
    # Both tasks of ranks have a GPU, so the task that starts the ranks has none.
    assert found["two"] == [["3,5", cores, resource.RLIM_INFINITY]] * 2
    assert found["given"] == [["7", "4", resource.RLIM_INFINITY]] * 2
    assert "3 ranks need 3 task slots" in found["three"] and "spark.task.resource.gpu.amount" in found["three"]
