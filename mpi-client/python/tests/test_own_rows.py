"""A rank takes its run of each batch of all ranks: what it gets, against slices of a list."""

import random

import pyarrow
import pytest
from spark_supplier.batches import EVERY_ROW, OwnRows


def of_rank(rows, batch, rank, ranks):
    """By slices alone: the rows of a rank, batch by batch."""
    found = []
    for begin in range(0, len(rows), batch):
        whole = rows[begin : begin + batch]
        cut = [-(-number * batch // ranks) for number in (rank, rank + 1)]
        found.append(whole[cut[0] : cut[1]])
    return [run for run in found if run]


def cases():
    draw = random.Random(7)
    for _ in range(300):
        ranks = draw.randint(1, 9)
        yield draw.randint(ranks, 40), ranks, draw.randint(0, 150)


def test_counts_and_runs_of_any_order():
    for batch, ranks, rows in cases():
        for rank in range(ranks):
            own, expected = OwnRows.of(batch, rank, ranks), of_rank(range(rows), batch, rank, ranks)
            assert own.count(rows) == sum(map(len, expected))
            at, runs = own.next(0), []
            while at < rows:
                runs.append(range(at, min(own.end(at), rows)))
                at = own.next(runs[-1][-1] + 1)
            assert [list(run) for run in runs] == [list(run) for run in expected]


def test_every_row_is_the_own_one():
    for row in (0, 1, 10**15):
        assert EVERY_ROW.next(row) == row and EVERY_ROW.count(row) == row and EVERY_ROW.end(row) > row


SIZES = pytest.mark.parametrize("sizes", [[40], [4] * 10, [1, 7, 3, 3, 11, 2, 13], [5, 35]], ids=str)
PLACES = [(12, 0, 1), (12, 0, 3), (12, 2, 3), (7, 1, 2), (10, 3, 4), (3, 2, 3)]


def opened(dataset, sizes, own, **options):
    data = dataset(sizes, batch_size=own.size, **options)
    data._batches.own = data._views.own = own
    return data


@SIZES
@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_batches_of_blocks_of_any_size(dataset, sizes, zero_copy, place):
    data = opened(dataset, sizes, OwnRows.of(*place), zero_copy=zero_copy)
    expected = of_rank(list(range(sum(sizes))), *place)
    assert [batch["x"].tolist() for batch in next(data.epochs())] == expected
    assert data.statistics()[0].rows == sum(map(len, expected))


@SIZES
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_record_batches(dataset, sizes, place):
    data = opened(dataset, sizes, OwnRows.of(*place))
    found = pyarrow.table(next(data.epochs())).column("x").to_pylist()
    assert found == sum(of_rank(list(range(sum(sizes))), *place), [])


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_full_batches_alone(dataset, place):
    data = opened(dataset, [4] * 10, OwnRows.of(*place), uneven="drop")
    full = [run for run in of_rank(list(range(40)), *place) if len(run) == OwnRows.of(*place).size]
    assert [batch["x"].tolist() for batch in next(data.epochs())] == full


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("sizes", [[4] * 10, [1, 7, 3, 3, 11, 2, 13]], ids=str)
def test_a_step_begins_when_the_whole_batch_has_come(dataset, sizes, place):
    """In the step nothing is released, and another rank may need the ring for its run of the same batch."""
    batch, rows = place[0], sum(sizes)
    data = opened(dataset, sizes, OwnRows.of(*place))
    for step, _ in enumerate(next(data.epochs())):
        due = min(rows, (step + 1) * batch)
        assert data._opened().statistics.elements >= due or place[2] == 1
        position = data.state_dict()["position"].split(":")
        assert int(position[4]) in (due, rows) or place[2] == 1
