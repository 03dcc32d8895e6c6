"""Several functions on one supply: each gets every row, on ranks of its own. Real Spark, real ranks."""

import collections
import os

import pytest
from spark_supplier import Mpirun, Rows, RunError, Supplier

from supplier_session import session_fixture

spark = session_fixture(5)
ROWS = 60


def ids(data):
    """The ids of all ranks of this function, and how the function sees them."""
    from torch import distributed

    own = [int(row) for epoch in data.epochs() for batch in epoch for row in batch["id"]]
    shares: list[list[int]] = [[]] * distributed.get_world_size()
    distributed.all_gather_object(shares, own)
    places = [int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
    return collections.Counter(sum(shares, [])), distributed.get_rank(), places


def doubled(data):
    counts, *places = ids(data)
    return collections.Counter({2 * row: count for row, count in counts.items()}), *places


def nothing(data):  # noqa: ARG001
    return "early"


@pytest.fixture(scope="module")
def four(memory_of_module):
    with Supplier(ranks=4, folder=memory_of_module) as supplier:
        yield supplier


@pytest.fixture(scope="module")
def memory_of_module(tmp_path_factory):
    return tmp_path_factory.mktemp("memory")


@pytest.mark.parametrize("options", [{}, {"shuffle": "all"}, {"order": "global"}], ids=str)
def test_each_function_gets_every_row_on_ranks_of_its_own(spark, four, options):
    rows = Rows(spark.range(0, ROWS, 1, 8), epochs=2, batch_size=6, uneven="keep", **options)
    expected = dict.fromkeys(range(ROWS), 2)
    first, second = four.run([ids, doubled], rows)
    assert (dict(first[0]), *first[1:]) == (expected, 0, [0, 2, 0, 4])
    assert dict(second[0]) == {2 * row: 2 for row in range(ROWS)} and second[1:] == (0, [0, 2, 1, 4])


@pytest.mark.long
def test_a_function_that_returns_early_holds_no_other(spark, four):
    one, *others = four.run([nothing, ids, nothing, ids], Rows(spark.range(0, ROWS, 1, 8), uneven="keep"))
    assert one == others[1] == "early"
    assert all(dict(each[0]) == dict.fromkeys(range(ROWS), 1) for each in (others[0], others[2]))


@pytest.mark.long
def test_validation_and_an_early_return(spark, four):
    """The rest of both is received in turns: a ring is smaller than what comes."""
    frame = spark.range(0, 4000, 1, 8).selectExpr("id", "repeat('x', 4000) as text")

    def reads_both(data):
        return [sum(len(batch["id"]) for batch in rows) for epoch in data.epochs() for rows in (epoch, data.validation)]

    rows = Rows(frame, batch_size=100, epochs=2, validation=frame, uneven="keep")
    early, sizes = four.run([nothing, reads_both], rows)
    assert (early, sum(sizes), four.run([nothing], frame)) == ("early", 2 * 4000, ["early"])


def test_each_function_has_rows_of_its_own_in_results(spark, four):
    def score(data, factor):
        with data.results() as out:
            for batch in data:
                out.write({"id": batch["id"], "score": factor * batch["id"]})
        return factor

    def by_two(data):
        return score(data, 2)

    def by_three(data):
        return score(data, 3)

    found = four.run([by_two, by_three], spark.range(0, ROWS, 1, 8), results="id long, score long")
    assert [each.value for each in found] == [2, 3]
    for each, factor in zip(found, (2, 3)):
        with each:
            rows = sorted((row.id, row.score) for row in each.rows.collect())
            assert rows == [(row, factor * row) for row in range(ROWS)]


@pytest.mark.parametrize(
    ("functions", "supplier", "rows", "says"),
    [
        ([], {}, {}, "functions is an empty list"),
        ([ids, ids, ids], {}, {}, "there are 3 functions, and ranks is 4: each 3 neighbouring"),
        ([ids, "train.py"], {}, {}, "is a script, and a list is of functions alone"),
        ([ids, 3], {}, {}, "function is 3 .int., but must be a function"),
        ([ids, ids], {}, {"share": 2}, "several functions share the rows by themselves"),
        ([ids, ids], {"launcher": Mpirun()}, {}, "several functions need launcher='torch'"),
    ],
)
def test_wrong_lists(spark, functions, supplier, rows, says):
    with pytest.raises(RunError, match=says):
        Supplier(ranks=4, **supplier).run(functions, Rows(spark.range(9), **rows))
