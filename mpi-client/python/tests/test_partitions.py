"""What Spark holds for a partition is free when it is supplied, and not when the run ends."""

import pytest

from supplier_session import found_by

MIB = 1 << 20
# What its partitions hold together does not fit into a heap of 1 GiB.
WORST = ["merge join, Python function"]


def supply_all(partitions, epochs, kinds, limit):
    of_kinds = found_by("partitions_program.py", partitions, epochs, *kinds, seconds=limit)
    for kind, found in of_kinds.items():
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
