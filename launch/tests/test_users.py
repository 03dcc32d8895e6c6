"""Ranks of one user, fed by the Supplier of another user: only by a group that the config files name."""

import os
import tempfile

import pytest

import databases
from places import LAUNCH
from processes import ran
from ranks import multiset
from supplier import SupplierFailure, rows
from users import ALICE, FEEDERS, give_to_alice, needs_root


@pytest.fixture
def database(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(50))


@pytest.fixture
def alice(make_pairs):
    """Makes pairs that belong to alice, and the program of her ranks."""

    def make(**words):
        pairs = make_pairs(2, **words)
        return pairs, give_to_alice(pairs)

    return make


@pytest.fixture
def resident_folder():
    """A folder that does not exist yet, where alice can reach it."""
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        yield os.path.join(parent, "resident")


@needs_root
@pytest.mark.parametrize("is_resident", [False, True], ids=["copied", "resident files"])
def test_through_a_group_every_element_arrives(supplier, start_ranks, alice, database, resident_folder, is_resident):
    pairs, program = alice(group=FEEDERS)
    ranks = start_ranks(pairs, 2, program=program)
    resident = ["--resident-folder", resident_folder] if is_resident else []
    run = supplier.start(database, pairs, "--epochs", 2, "--partitions", 5, *resident, ranks=2)
    assert [rank.finish() for rank in ranks] == [0, 0], [rank.error for rank in ranks]
    assert multiset(ranks) == databases.expected_lines(database, 2)
    assert len(rows(run.result())) == 2


@needs_root
def test_without_a_group_the_line_names_both_users(supplier, start_ranks, alice, database):
    pairs, program = alice()
    ranks = start_ranks(pairs, 2, program=program, timeout=3)
    with pytest.raises(SupplierFailure) as failure:
        supplier.start(database, pairs, ranks=2, timeout=10).result()
    assert f"belongs to {ALICE}" in str(failure.value)
    assert "runs as root" in str(failure.value)
    assert "group=" in str(failure.value)
    assert [rank.finish() for rank in ranks] == [1, 1]


def test_config_files_for_a_group_can_be_read_by_it(make_pairs):
    group = os.getegid()
    pairs = make_pairs(2, group=str(group))
    lines = [line for line in pairs.mapped_files.read_text().splitlines() if line.startswith("/")]
    assert [line.split()[1:] for line in lines] == [[f"group={group}"]] * 2
    for path, mode in ((pairs.folder, 0o750), (pairs.mapped_files, 0o640), (pairs.named_pipes, 0o640)):
        assert (path.stat().st_mode & 0o7777, path.stat().st_gid) == (mode, group)


@pytest.mark.parametrize("group", ["", "two words", "a#b"])
def test_a_group_that_a_line_cannot_express_is_refused(tmp_path, group):
    done = ran(LAUNCH / "make-configs", f"--group={group}", "1", tmp_path / "run")
    assert done.returncode == 2
    assert "is not a name of a group" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_group_that_is_not_there_fails_each_call(tmp_path):
    """A folder or a file that a failed call left would count as shared."""
    (tmp_path / "mine").mkdir()
    for output in ("run", "run", "mine", "mine", "mine"):
        done = ran(LAUNCH / "make-configs", "--group=no-such-group", "1", tmp_path / "pairs", tmp_path / output)
        assert done.returncode == 1 and "cannot be given to the group 'no-such-group'" in done.stderr
    assert not (tmp_path / "run").exists()
