"""Ranks read the data of an LMDB in the LMDB itself (--in-place)."""

import pytest

import databases
from ranks import multiset

HINT = "the ranks could read this LMDB in place, without copies: use "


@pytest.mark.parametrize(
    "options",
    [(), ("--shuffle", "rows", "--shuffle-buffer", 16), ("--block-elements", 10)],
    ids=["in order", "shuffled", "steps"],
)
def test_every_element_once(supply, database, options):
    supply(database, "--in-place", "--partitions", 7, *options, ranks=2, epochs=3, ring="256KiB", block="4KiB")


def test_elements_larger_than_a_block(supply, tmp_path):
    elements = databases.numbered(6, bytes_of=lambda number: number * 40_000)
    supply(databases.write(tmp_path / "lmdb", elements), "--in-place", block="4KiB", ring="16KiB")


@pytest.fixture
def log(supplier):
    """Returns the lines that the Supplier has logged for the user until then."""
    log4j = supplier.session._jvm.org.apache.logging.log4j
    logger = log4j.LogManager.getLogger("supply.run.Progress")
    text = supplier.session._jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, text, "test", False, True)
    appender.start()
    logger.addAppender(appender)
    yield lambda: text.toString().splitlines()
    logger.removeAppender(appender)
    appender.stop()


@pytest.mark.parametrize("in_place", [False, True], ids=["copied", "in place"])
def test_a_dataframe(supplier, make_pairs, start_rank, database, log, in_place):
    pairs = make_pairs()
    rank = start_rank(pairs)
    data = supplier.session.read.format("lmdb").option("inPlace", in_place).load(str(database))
    files = {"mapped-files": str(pairs.mapped_files), "named-pipes": str(pairs.named_pipes)}
    data.write.format("supply").mode("append").options(**files).save()
    assert rank.finish() == 0, rank.error
    assert multiset([rank]) == databases.expected_lines(database)
    hints = [line for line in log() if line.startswith(HINT)]
    assert hints == ([] if in_place else [HINT + 'option("inPlace", true) of its reader'])
