"""A user's database is read in any place, and is not changed."""

import os
import stat

import pytest

import databases

NOBODY = 65534


def state(path):
    """Everything that a careless reader of a database could change: files, modes, owners, times, bytes."""
    found = {}
    for file in [path, *sorted(path.rglob("*"))]:
        status = file.stat()
        found[file] = (
            stat.filemode(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
            file.read_bytes() if file.is_file() else None,
        )
    return found


@pytest.fixture
def folder(tmp_path):
    """A folder with an LMDB, which can be removed at the end."""
    folder = databases.write(tmp_path / "lmdb", databases.numbered(20))
    yield folder
    folder.chmod(0o700)


@pytest.fixture
def supply_and_compare(supply, folder):
    """Runs on the folder, or on a path in it. The run must not change the folder."""

    def run(path=folder, **options):
        before = state(folder)
        supply(path, "--partitions", 3, ranks=2, **options)
        assert state(folder) == before

    return run


def as_caffe_leaves_it(folder):
    pass


def without_lock_file(folder):
    (folder / "lock.mdb").unlink()


def read_only(folder):
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def read_only_without_lock_file(folder):
    without_lock_file(folder)
    read_only(folder)


def of_another_user(folder):
    for path in (*folder.iterdir(), folder):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("prepare", [
    as_caffe_leaves_it, without_lock_file, read_only, read_only_without_lock_file,
    pytest.param(of_another_user, marks=pytest.mark.skipif(
        os.geteuid() != 0, reason="only root can give a file to another user"
    )),
])  # fmt: skip
def test_a_folder(supply_and_compare, folder, prepare):
    prepare(folder)
    supply_and_compare(epochs=2)


def test_a_bare_data_file(supply_and_compare, folder):
    supply_and_compare(folder / "data.mdb")


def test_a_bare_data_file_of_another_name(supply_and_compare, folder):
    (folder / "lock.mdb").unlink()
    supply_and_compare((folder / "data.mdb").rename(folder / "digits.lmdb"))


def test_through_a_symbolic_link(supply_and_compare, folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    supply_and_compare(link)


def test_a_path_with_white_space(supply, tmp_path):
    supply(databases.write(tmp_path / "my images, größer", databases.numbered(5)))
