"""spark_supplier.testing.data: what a function gets of a call, without Spark and processes."""

import os
import pathlib

import numpy
import pyarrow
import pytest
import spark_supplier
import torch
from spark_supplier import testing
from spark_supplier.torch import DataLoader


def range_of(count):
    return numpy.arange(count)


def ids(data):
    return [batch["id"].tolist() for batch in data]


def test_epochs_of_batches():
    data = testing.data({"id": range_of(10)}, batch_size=4, epochs=2)
    assert [(epoch.number, ids(epoch)) for epoch in data.epochs()] == [
        (0, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        (1, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
    ]
    assert data.begin() is False
    with pytest.raises(spark_supplier.SupplyError, match="the data has ended after epoch 1"):
        next(iter(data))


def test_the_number_of_batches_is_known():
    data = testing.data({"id": range_of(10)}, batch_size=4)
    assert data.begin() and len(data) == 3


@pytest.mark.parametrize(("column", "options", "expected"), [
    (numpy.ones((3, 2), "float32"), {}, torch.ones(3, 2)),
    (torch.tensor([[[1, 2]], [[3, 4]], [[5, 6]]]), {}, torch.tensor([[[1, 2]], [[3, 4]], [[5, 6]]])),
    ([1.5, 2.5, 3.5], {}, torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64)),
    (["a", "bc", "d"], {}, ["a", "bc", "d"]),
    ([True, False, True], {}, torch.tensor([True, False, True])),
    ([1, None, 3], {"nulls": {"x": -1}}, torch.tensor([1, -1, 3])),
    ([[1], [2, 3], []], {"ragged": {"x": "pad"}}, torch.tensor([[1, 0], [2, 3], [0, 0]])),
    ({"a": range_of(3)}, {}, {"a": torch.tensor([0, 1, 2])}),
    (range_of(3), {"dtypes": {"x": torch.float32}}, torch.tensor([0.0, 1.0, 2.0])),
])  # fmt: skip
def test_columns_have_the_forms_of_a_call(column, options, expected):
    [batch] = testing.data({"x": column}, batch_size=3, **options)
    assert type(batch["x"]) is type(expected)
    found = batch["x"]
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype and torch.equal(found, expected)
    elif isinstance(expected, dict):
        assert found["a"].tolist() == expected["a"].tolist()
    else:
        assert found == expected


def test_errors_are_those_of_a_call():
    with pytest.raises(spark_supplier.ColumnError, match="column 'x' of block 0 .*1 of 3 elements are null"):
        list(testing.data({"x": [1, None, 3]}, batch_size=3))


def test_tables_and_frames():
    table = pyarrow.table({"id": range_of(5), "text": list("abcde")})
    assert ids(testing.data(table, batch_size=5, columns=["id"])) == [[0, 1, 2, 3, 4]]
    pandas = pytest.importorskip("pandas")
    data = testing.data(
        pandas.DataFrame({"id": range_of(5), "text": list("abcde")}, index=[9, 8, 7, 6, 5]), batch_size=3
    )
    assert [(batch["id"].tolist(), batch["text"]) for batch in data] == [
        ([0, 1, 2], ["a", "b", "c"]),
        ([3, 4], ["d", "e"]),
    ]


def test_rows_of_many_blocks_and_columns():
    rows = {"id": range_of(3000), "x": numpy.random.default_rng(0).random((3000, 200))}
    seen = 0
    for batch in testing.data(rows, batch_size=7, block="64KiB", epochs=1):
        assert batch["x"].numpy() == pytest.approx(rows["x"][batch["id"].numpy()])
        seen += len(batch["id"])
    assert seen == 3000
    wide = {f"c{number}": range_of(4) for number in range(400)}
    [batch] = testing.data(wide, batch_size=4)
    assert list(batch) == list(wide) and batch["c399"].tolist() == [0, 1, 2, 3]


def test_a_kept_view_occupies_the_buffer():
    data = testing.data({"x": numpy.zeros((64, 512))}, batch_size=8, block="64KiB", zero_copy=True)
    with pytest.raises(spark_supplier.RingFullError, match="block 0: a view of 'x'"):
        list(data)


def test_orders():
    shuffled = testing.data({"id": range_of(50)}, batch_size=50, epochs=2, shuffle=True, seed=3)
    [one], [two] = (ids(epoch) for epoch in shuffled.epochs())
    assert one != two and sorted(one) == sorted(two) == list(range(50))
    again = testing.data({"id": range_of(50)}, batch_size=50, epochs=2, shuffle=True, seed=3)
    assert ids(next(again.epochs())) == [one]
    shares = [
        ids(testing.data({"id": range_of(50)}, batch_size=50, shuffle=True, ranks=3, rank=rank)) for rank in range(3)
    ]
    assert sorted(row for share in shares for batch in share for row in batch) == list(range(50))
    assert ids(testing.data({"id": [7]}, ranks=2, rank=1)) == []


def test_validation_comes_in_each_epoch():
    data = testing.data({"id": range_of(4)}, batch_size=2, epochs=2, validation={"id": range_of(3)})
    assert [(ids(epoch), ids(data.validation)) for epoch in data.epochs()] == [([[0, 1], [2, 3]], [[0, 1], [2]])] * 2


def test_reports_are_kept():
    data = testing.data({"id": range_of(4)}, batch_size=2)
    for batch in data:
        data.report(loss=torch.tensor(0.5), first=batch["id"][0])
    assert [(row["epoch"], row["batch"], row["loss"], row["first"]) for row in data.reports] == [
        (0, 1, 0.5, 0.0), (0, 2, 0.5, 2.0),
    ]  # fmt: skip
    assert data.reports is data.reports and len(data.reports) == 2
    with pytest.raises(spark_supplier.SupplyError, match="which is no number"):
        data.report(loss="low")


def test_a_function_resumes_from_its_last_save():
    rows = {"id": range_of(20)}

    def train(data, stop=None):
        step = data.saved["step"] if data.saved else 0
        seen = []
        for epoch in data.epochs():
            for batch in epoch:
                step += 1
                seen += batch["id"].tolist()
                assert data.save(lambda: {"step": step, "slice": torch.zeros(1000, 1000)[0]})  # noqa: B023
                if step == stop:
                    return step, seen
        return step, seen

    first = testing.data(rows, batch_size=3, epochs=2, shuffle=True)
    _, seen = train(first, stop=3)
    assert first.saved is None and [state["step"] for state in first.saves] == [1, 2, 3]
    rest = testing.data(rows, batch_size=3, epochs=2, shuffle=True, resume=first)
    step, more = train(rest)
    whole = testing.data(rows, batch_size=3, epochs=2, shuffle=True)
    assert seen + more == train(whole)[1] and step == 14 and rest.saved_ranks == [0]
    with pytest.raises(spark_supplier.SupplyError, match="of other rows, or of another order"):
        list(testing.data(rows, batch_size=3, epochs=2, shuffle=True, seed=9, resume=first))
    with pytest.raises(spark_supplier.SupplyError, match=r"pass its state_dict\(\)"):
        whole.save(torch.nn.Linear(1, 1))
    with pytest.raises(spark_supplier.ConfigError, match="has saved nothing"):
        testing.data(rows, resume=testing.data(rows))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_a_loader(workers):
    rows = {"id": range_of(12)}
    loader = DataLoader(testing.data(rows, batch_size=2, epochs=2), num_workers=workers)
    batches = iter(loader)
    seen = [next(batches)["id"].tolist() for _ in range(2)]
    state = loader.state_dict()
    resumed = DataLoader(testing.data(rows, batch_size=2, epochs=2), num_workers=workers)
    resumed.load_state_dict(state)
    assert seen + ids(resumed) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert len(ids(resumed)) == 6, "the next epoch"


def test_written_rows():
    data = testing.data({"id": range_of(10), "x": numpy.ones((10, 2))}, batch_size=4, results="id long, score float")
    assert [data.written] == [None]
    with data:
        with data.results() as out:
            for batch in data:
                batch["score"] = batch["id"] * 2.0
                out.write(batch)
        assert data.written.schema.field("score").type == pyarrow.float32()
    assert data.written.column("score").to_pylist() == [2.0 * number for number in range(10)]
    own = testing.data({"id": range_of(3)})
    with own.results() as out:
        out.write({"text": ["a", None], "list": [[1], [2, 3]]})
        assert [own.written] == [None]
    assert own.written.to_pylist() == [{"text": "a", "list": [1]}, {"text": None, "list": [2, 3]}]


def test_a_repr_opens_nothing():
    data = testing.data({"id": range_of(4), "x": range_of(4)}, batch_size=2, epochs=2)
    assert repr(data) == "<LocalData of id, x: batches of 2, not begun>" and data._supply is None
    assert [repr(data) for _ in data] == ["<LocalData of id, x: batches of 2, in epoch 0>"] * 2
    reader = data._open()
    assert repr(reader) == "<spark_supplier.ranks.Reader open, epoch 0 has ended>"
    assert repr(next(data.epochs())) == "<spark_supplier.torch.Epoch 1>"
    data.close()
    assert repr(data) == "<LocalData of id, x: batches of 2, closed>"
    assert repr(reader) == "<spark_supplier.ranks.Reader closed, epoch 0 has ended>"


def test_nothing_is_left():
    def files():
        return set(pathlib.Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp").glob("supply-testing-*"))

    before, descriptors = files(), len(os.listdir("/proc/self/fd"))
    data = testing.data({"id": range_of(10)}, batch_size=4, epochs=3, validation={"id": range_of(2)})
    next(iter(data))
    assert data.validation is not None
    next(iter(data.validation))
    data.close()
    with pytest.raises(spark_supplier.SupplyError, match="closed"):
        next(iter(data))
    del data
    unread = testing.data({"id": range_of(10)})
    next(iter(unread))
    del unread
    assert files() == before and len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize(("rows", "options", "says"), [
    ({}, {}, "rows has no rows"), ({"x": []}, {}, "rows has no rows"), ([1, 2], {}, "must be a dict by column"),
    ({"x": [1], "y": [1, 2]}, {}, "different numbers of rows: {'x': 1, 'y': 2}"),
    ({"x": [1]}, {"ranks": 2, "rank": 2}, "rank is 2: it must be below ranks, 2"),
    ({"x": [1]}, {"epochs": 0}, "epochs"),
    ({"x": [1]}, {"batch_size": 0}, "batch_size"), ({"x": [1]}, {"validation": {}}, "validation has no rows"),
])  # fmt: skip
def test_what_is_refused(rows, options, says):
    with pytest.raises(spark_supplier.SupplyError, match=says):
        testing.data(rows, **options)
