"""Later epochs from memory (--resident) or files (--resident-folder): the ranks get the same data."""

import os

import pytest

import databases
from ranks import one_line
from supplier import SupplierFailure


@pytest.fixture
def database(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(200))


@pytest.mark.parametrize("where", ["memory", "files"])
def test_the_same_elements_in_the_same_order(supply, database, tmp_path, where):
    folder = tmp_path / "resident"
    folder.mkdir()

    def run(*resident):
        options = ("--partitions", 20, "--seed", 7, "--block-elements", 7, *resident)
        ranks = supply(database, *options, ranks=2, epochs=4, ring="16KiB", block="4KiB")
        return [rank.lines for rank in ranks]

    assert run(*(("--resident",) if where == "memory" else ("--resident-folder", folder))) == run()
    assert list(folder.iterdir()) == []


def hide_values(database):
    """Only a file that has been kept has the data now. The LMDB is known by its path, size and time."""
    file = database / "data.mdb"
    before, content = file.stat(), file.read_bytes()
    for _, datum in databases.numbered(200):
        assert datum.data in content
        content = content.replace(datum.data, bytes(len(datum.data)))
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_kept_file_serves_a_run_with_another_ring(supply, supplier, make_pairs, start_rank, database, tmp_path):
    keep = ("--resident-folder", tmp_path / "resident", "--keep")
    [first] = supply(database, *keep, epochs=2, ring="16KiB", block="8KiB")
    [kept] = (tmp_path / "resident").iterdir()
    before = kept.stat()
    hide_values(database)
    pairs = make_pairs(ring="32KiB", block="4KiB")
    rank = start_rank(pairs)
    run = supplier.start(database, pairs, *keep, "--epochs", 2)
    assert rank.finish() == 0, rank.error
    run.result()
    assert rank.lines == first.lines
    assert [kept] == list((tmp_path / "resident").iterdir()) and kept.stat().st_mtime_ns == before.st_mtime_ns


def test_a_disk_that_is_full(supplier, make_pairs, start_ranks, database, make_small_file_system):
    small_disk = make_small_file_system("128k")
    pairs = make_pairs(1, ring="16KiB", block="4KiB")
    [rank] = start_ranks(pairs, 1)
    run = supplier.start(
        database, pairs, "--resident-folder", small_disk, "--epochs", 2, "--partitions", 20, "--block-elements", 1
    )
    with pytest.raises(SupplierFailure) as failure:
        run.result()
    text = str(failure.value)
    assert rank.finish() == 1 and one_line(rank) == text
    assert f"the disk of the resident folder {small_disk} is full (No space left on device): " in text
    assert "bytes are written, of about" in text and "--resident-folder" in text
    assert list(small_disk.iterdir()) == []


def test_a_dataframe_is_known_by_its_name(supplier, make_pairs, start_rank, database, tmp_path):
    data = supplier.session.read.format("lmdb").option("partitions", 4).load(str(database))
    keep = {"resident-folder": str(tmp_path / "resident"), "keep": "numbers", "epochs": 2}

    def run():
        pairs = make_pairs(ring="16KiB", block="8KiB")
        rank = start_rank(pairs)
        files = {"mapped-files": str(pairs.mapped_files), "named-pipes": str(pairs.named_pipes)}
        data.write.format("supply").mode("append").options(**files, **keep).save()
        assert rank.finish() == 0, rank.error
        return rank.lines

    first = run()
    assert len(first) == 2 * 200
    # Spark could not compute it again.
    (database / "data.mdb").unlink()
    assert run() == first
