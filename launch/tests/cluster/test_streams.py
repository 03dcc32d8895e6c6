"""A streaming query whose ranks are on the nodes of a cluster."""

import pytest

from waiting import wait_until

ROWS, PARTITIONS, BATCHES = 200, 8, 4


@pytest.fixture
def start_query(supplier, tmp_path):
    """Starts queries, and stops them at the end of the test."""
    started = []

    def start(run, **options):
        numbers = (
            supplier.session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", ROWS)
            .option("numPartitions", PARTITIONS)
            .load()
        )
        datums = numbers.selectExpr(
            "cast(cast(value as string) as binary) as key",
            "cast(value as int) as label",
            "1 as channels",
            "1 as height",
            "1 as width",
            "false as encoded",
            "cast(repeat('x', cast(value % 1000 as int)) as binary) as data",
        )
        writer = datums.writeStream.format("supply").option("checkpointLocation", f"/checkpoints/{tmp_path.name}")
        writer.options(ranks=run.ranks, timeout=run.timeout, hosts=run.hosts, **options)
        writer.options(**{"mapped-files": run.mapped_files, "named-pipes": run.named_pipes})
        started.append(writer.start())
        return started[-1]

    yield start
    for query in started:
        query.stop()


def numbers_of(lines):
    """How often each number came, by its epoch."""
    numbers = {}
    for line, count in lines.items():
        epoch, _, number, *_ = line.split("\t")
        numbers.setdefault(int(epoch), []).extend([int(number)] * count)
    return numbers


@pytest.mark.long
def test_each_row_reaches_one_rank_once(start_query, make_run):
    run = make_run(1, 2)
    run.start()
    query = start_query(run)
    wait_until(lambda: query.exception() or (query.lastProgress and query.lastProgress["batchId"] >= BATCHES - 1))
    query.stop()
    assert query.exception() is None
    status, lines, said = run.finish()
    assert (status, said) == (0, [])
    numbers = numbers_of(lines)
    for batch in range(query.lastProgress["batchId"] + 1):
        assert sorted(numbers.pop(batch)) == list(range(batch * ROWS, (batch + 1) * ROWS))
    # The batch in which the query was stopped.
    assert len(numbers) <= 1
    for batch, begun in numbers.items():
        assert len(set(begun)) == len(begun) and set(begun) <= set(range(batch * ROWS, (batch + 1) * ROWS))
