"""What Spark holds for a partition is free when it is supplied, and not when the run ends."""

import json
import pathlib
import subprocess
import sys

import pytest

from supplier_session import prepare_environment, shared_memory

prepare_environment()
for module in ("pyspark", "torch", "pandas"):
    pytest.importorskip(module)

MIB = 1 << 20
# What its partitions hold together does not fit into a heap of 1 GiB.
WORST = ["merge join, Python function"]


def supply_all(partitions, epochs, kinds, limit):
    program = pathlib.Path(__file__).with_name("partitions_program.py")
    with shared_memory() as folder:
        done = subprocess.run(
            [sys.executable, program, folder, str(partitions), str(epochs), *kinds],
            capture_output=True, text=True, timeout=limit,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for kind, found in json.loads(done.stdout).items():
        assert found["rows"] == found["of Spark"], kind
        # After the last epoch the task ends.
        first, last = found["held"][0], found["held"][-2]
        assert first["heap"] < 256 * MIB and last["heap"] - first["heap"] < 32 * MIB, (kind, found["held"])
        assert last["execution memory"] < 64 * MIB, (kind, found["held"])
        assert last["descriptors"] - first["descriptors"] < 16, (kind, found["held"])
        assert last["files"] - first["files"] < 16, (kind, found["held"])


@pytest.mark.long
def test_memory_of_partitions_is_free_after_each():
    supply_all(150, 2, WORST, limit=240)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_grows_with_epochs():
    supply_all(1000, 20, [], limit=3600)
