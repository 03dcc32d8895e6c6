"""The limits of a container, as its control groups of both versions say them."""

import dataclasses
import pathlib

import pytest
from spark_supplier.errors import RunError
from spark_supplier.limits import container_cores, container_memory
from spark_supplier.node import run_files
from spark_supplier.node.run_files import RunFiles

MIB = 1 << 20
VERSION_2 = {
    "memory.max": f"{512 * MIB}",
    "memory.current": f"{412 * MIB}",
    "memory.stat": f"file {60 * MIB}\nshmem {20 * MIB}\n",
}
VERSION_1 = {
    "memory/memory.limit_in_bytes": f"{512 * MIB}",
    "memory/memory.usage_in_bytes": f"{412 * MIB}",
    "memory/memory.stat": f"cache 1\ntotal_cache {60 * MIB}\ntotal_shmem {20 * MIB}\n",
}


def groups(root, files, group=""):
    """The files of a group of a job, or of the container's top."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("4:memory:/job\n5:cpu,cpuacct:/job\n0::/job\n", encoding="utf-8")
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / pathlib.Path(name).parent / group / pathlib.Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(root)


@pytest.mark.parametrize("group", ["", "job"])
@pytest.mark.parametrize("files", [VERSION_2, VERSION_1], ids=["2", "1"])
def test_shared_memory_counts_and_droppable_files_do_not(tmp_path, files, group):
    assert container_memory(groups(tmp_path, files, group)) == (512 * MIB, 140 * MIB)


def test_the_memory_limit_of_which_the_least_is_left(tmp_path):
    root = groups(tmp_path, VERSION_2, "job")
    for name, text in {**VERSION_2, "memory.max": f"{1024 * MIB}", "memory.current": f"{1000 * MIB}"}.items():
        (tmp_path / "sys/fs/cgroup" / name).write_text(text, encoding="utf-8")
    assert container_memory(root) == (1024 * MIB, 64 * MIB)


@pytest.mark.parametrize(
    "files",
    [{}, {**VERSION_2, "memory.max": "max\n"}, {**VERSION_1, "memory/memory.limit_in_bytes": f"{(1 << 63) - 4096}"}],
    ids=["none", "2", "1"],
)
def test_no_memory_limit(tmp_path, files):
    assert container_memory(groups(tmp_path, files)) is None


@pytest.mark.parametrize("group", ["", "job"])
@pytest.mark.parametrize(
    "files, cores",
    [
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_the_quota_of_cores(tmp_path, files, cores, group):
    assert container_cores(groups(tmp_path, files, group)) == cores


def test_no_quota_of_cores(tmp_path):
    without = {"cpu.max": "max 100000\n", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert container_cores(groups(tmp_path, without)) == container_cores(str(tmp_path / "nothing"))


def test_rings_that_do_not_fit_into_the_container(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "container_memory", lambda: (512 * MIB, 140 * MIB))
    files = RunFiles(str(tmp_path), "run", ("train",), 2, ring=75 * MIB)
    files.require_space(1, "host")
    expected = (
        "need 150 MiB, but of their container.s memory limit on host, 512 MiB, 140 MiB are left: raise .*memoryOverhead"
    )
    with pytest.raises(RunError, match=expected):
        files.require_space(2, "host")
    # Two ranks that read one ring.
    dataclasses.replace(files, share=2).require_space(2, "host")
    dataclasses.replace(files, share="node").require_space(8, "host")
