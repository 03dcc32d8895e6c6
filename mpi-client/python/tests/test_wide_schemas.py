"""Many columns, and names of any text: blocks, record batches, batches of a data set, and results."""

import numpy
import pyarrow
import pytest

from values import batch

NAMES = ["", "a.b", 'it\'s "quoted" `so`', "two\nlines\t", "\N{GRINNING FACE}", "n" * 127, "n" * 128, "\u00fc" * 30000]
LARGE = {"ring": "16MiB", "block": "4MiB"}


def numbered(count, rows=2):
    return batch(**{f"column_{i}": (range(i, i + rows), "int32") for i in range(count)})


def named(names=NAMES):
    return batch(**{name: ([i, -i], "int32") for i, name in enumerate(names)})


@pytest.fixture
def large(open_pair):
    """A pair whose blocks have room for many columns."""
    return open_pair(**LARGE)


@pytest.mark.parametrize("count", [320, 321, 10000])
def test_columns_of_a_block(large, count):
    rank, task = large
    task.supply(numbered(count))
    block = rank.next_block()
    assert block.columns == [f"column_{i}" for i in range(count)]
    for i in (0, 319, count - 1):
        assert block.numpy(f"column_{i}").tolist() == [i, i + 1]
    got = pyarrow.record_batch(block)
    assert got.num_columns == count and got.column(count - 1).to_pylist() == [count - 1, count]


def test_names_of_any_text(large):
    rank, task = large
    supplied = named()
    task.supply(supplied)
    block = rank.next_block()
    assert block.columns == NAMES
    for i, name in enumerate(NAMES):
        assert block.numpy(name).tolist() == [i, -i]
    assert pyarrow.record_batch(block).to_pydict() == supplied.to_pydict()


def test_batches_of_a_data_set(batches_of_blocks):
    wide = numbered(400, rows=3)
    columns = tuple(wide.schema.names)
    found = batches_of_blocks([wide], columns=columns, ring="16MiB", block="4MiB")
    assert len(found) == 1 and list(found[0]) == list(columns)
    assert found[0]["column_399"].tolist() == [399, 400, 401]


@pytest.mark.parametrize("supplied", [numbered(10000), named()], ids=["many", "names"])
def test_results(large, files, supplied):
    from result_file import read_result

    rank, _ = large
    reordered = supplied.select(list(reversed(supplied.schema.names)))
    arrays = {name: numpy.asarray(column) for name, column in zip(supplied.schema.names, supplied.columns)}
    with rank.results("scores", supplied.schema) as out:
        for form in (supplied, reordered, arrays):
            out.write(form)
    table = read_result(f"{files.paths[0]}.scores.result")
    assert table.column_names == supplied.schema.names
    assert table.to_pydict() == pyarrow.Table.from_batches([supplied] * 3).to_pydict()
