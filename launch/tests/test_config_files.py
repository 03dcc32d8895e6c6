"""Wrong config files end both sides. Each side prints one line that names the file and the remedy."""

import pytest

import databases
from ranks import one_line
from supplier import SupplierFailure


@pytest.fixture
def failures(supplier, make_pairs, start_ranks, tmp_path):
    """Runs ranks with config files that `spoil` has changed. Returns the Supplier's text and the ranks' lines."""

    def run(spoil, ranks=2):
        database = databases.write(tmp_path / "lmdb", databases.numbered(20))
        pairs = make_pairs(2)
        spoil(pairs)
        receivers = start_ranks(pairs, ranks)
        with pytest.raises(SupplierFailure) as failure:
            supplier.start(database, pairs, ranks=ranks, timeout=5).result()
        assert [rank.finish() for rank in receivers] == [1] * ranks
        return str(failure.value), [one_line(rank) for rank in receivers]

    return run


def drop_last_line(file):
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.long
def test_too_few_lines(failures):
    text, lines = failures(lambda pairs: None, ranks=3)
    for message in (text, lines[2]):
        assert "mapped-files.conf" in message and "named-pipes.conf" in message and "2" in message
    # Ranks 0 and 1 have lines in the files. They get the reason from Spark.
    assert lines[:2] == [text] * 2


@pytest.mark.parametrize("shorter", ["mapped_files", "named_pipes"])
def test_different_length(failures, shorter):
    text, lines = failures(lambda pairs: drop_last_line(getattr(pairs, shorter)))
    for message in (text, *lines):
        assert "mapped-files.conf has" in message and "named-pipes.conf has" in message
        assert "line i of both belongs to local rank i" in message


def test_no_such_file(failures):
    text, lines = failures(lambda pairs: pairs.named_pipes.unlink())
    for message in (text, *lines):
        assert "named-pipes.conf" in message


@pytest.mark.parametrize(
    "spoilt, wrong",
    [
        ("relative/pair.mapped\n/dev/shm/pair-1.mapped\n", "'relative/pair.mapped' is not an absolute path"),
        ("/dev/shm/pair-0.mapped rings=1MiB\n/dev/shm/pair-1.mapped\n", "unknown word 'rings=1MiB'"),
    ],
)
def test_a_line_that_is_wrong(failures, spoilt, wrong):
    text, lines = failures(lambda pairs: pairs.mapped_files.write_text("# comment\n\n" + spoilt))
    for message in (text, *lines):
        assert "mapped-files.conf:3: " in message and wrong in message


def test_comments_blank_lines_and_sizes(supplier, make_pairs, start_ranks, tmp_path):
    database = databases.write(tmp_path / "lmdb", databases.numbered(50))
    pairs = make_pairs(2)
    lines = [line for line in pairs.mapped_files.read_text().splitlines() if line.startswith("/")]
    pairs.mapped_files.write_text(f"# all\n\n  {lines[0]}\tring=64KiB block=4096 # the first\n\n{lines[1]} block=1MiB")
    receivers = start_ranks(pairs, 2)
    supplier.start(database, pairs, ranks=2).result()
    assert [rank.finish() for rank in receivers] == [0, 0]
    assert sum(len(rank.lines) for rank in receivers) == 50
