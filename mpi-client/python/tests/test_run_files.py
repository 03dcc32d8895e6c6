"""The folders of a run on a node. Another user may know their names, and make them first."""

import contextlib
import os
import subprocess

import pytest
from spark_supplier.errors import RunError
from spark_supplier.node.run_files import RunFiles

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")


@pytest.fixture
def files(tmp_path):
    return RunFiles(str(tmp_path), "run", ("train",), 1)


MAKE = {"config_folder": RunFiles.write_config, "pair_folder": RunFiles.make_pair_folder}
each_folder = pytest.mark.parametrize("name", MAKE)


def expect_refused(files, name):
    with pytest.raises(RunError, match=f"{getattr(files, name)} on .* belongs to another user"):
        MAKE[name](files)


@needs_root
@each_folder
def test_a_folder_of_another_user(files, name):
    getattr(files, name).mkdir()
    os.chown(getattr(files, name), NOBODY, NOBODY)
    expect_refused(files, name)


@each_folder
def test_a_link_to_a_folder_of_this_user(files, name, tmp_path):
    (tmp_path / "target").mkdir()
    getattr(files, name).symlink_to("target")
    expect_refused(files, name)
    assert list((tmp_path / "target").iterdir()) == []


@each_folder
def test_a_folder_that_others_can_write(files, name):
    getattr(files, name).mkdir()
    getattr(files, name).chmod(0o777)
    expect_refused(files, name)


@each_folder
def test_a_folder_of_another_process_of_this_user(files, name):
    MAKE[name](files)
    before = sorted(files.config_folder.iterdir()) if files.config_folder.exists() else []
    MAKE[name](files)
    assert (sorted(files.config_folder.iterdir()) if files.config_folder.exists() else []) == before


@needs_root
def test_the_config_files_of_the_driver_are_used_by_a_node_process_of_another_user(tmp_path):
    files = RunFiles(str(tmp_path), "run", ("train",), 1, driver_user=NOBODY)
    files.config_folder.mkdir()
    os.chown(files.config_folder, NOBODY, NOBODY)
    files.write_config()
    assert list(files.config_folder.iterdir()) == []


@needs_root
@pytest.mark.parametrize(
    "size, fits", [("1m", False), ("32m", True), ("0", True)], ids=["small", "large", "without a limit"]
)
def test_the_space_for_the_rings(tmp_path, size, fits):
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "supply-test", tmp_path])
    if mount.returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        refused = pytest.raises(
            RunError, match="the rings of the ranks need 16 MiB: .* on node has 1 MiB, and 1 MiB are free"
        )
        with contextlib.nullcontext() if fits else refused:
            RunFiles(str(tmp_path), "run", ("train",), 1).require_space(2, "node")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_folder_that_the_config_files_cannot_express(tmp_path):
    folder = tmp_path / "my files"
    folder.mkdir()
    with pytest.raises(RunError, match="'.*my files/run' holds white space or '#'"):
        RunFiles(str(folder), "run", ("train",), 1).write_config()


def test_the_files_of_a_call_that_has_not_ended_go_with_the_ranks(tmp_path):
    of_ranks = RunFiles(str(tmp_path), "run")
    first, second = (of_ranks.of_call(number, ("train",), 1, 1 << 20, None) for number in (1, 2))
    for call in (first, second):
        call.begin(1, "node")
        call.results_folder.mkdir()
        if call is first:
            call.remove(keep_results=True)
    RunFiles(str(tmp_path), "run-of-another", ("train",), 1).write_config()
    of_ranks.remove_with_calls()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-1-results", "run-of-another-conf"]
