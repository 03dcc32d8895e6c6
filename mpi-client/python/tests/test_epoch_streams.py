"""An epoch as a stream of record batches, for the libraries that read Arrow's C stream interface."""

import pyarrow
import pytest

NUMBERS = list(range(40))


def test_pyarrow(dataset):
    data = dataset([4] * 10, epochs=2)
    for epoch in data.epochs():
        # The table is larger than the ring.
        table = pyarrow.table(epoch)
        assert table.schema == pyarrow.schema([pyarrow.field("x", "int64", False)])
        assert table.column("x").to_pylist() == NUMBERS
        position = f"position-1:{epoch.number + 1}:0:0:0:0000000000000077"
        assert data.state_dict()["position"] == position


def test_zero_copy_record_batches_are_views(dataset):
    data = dataset([4, 4], zero_copy=True)
    start, size = data._opened().mapping
    for batch in pyarrow.RecordBatchReader.from_stream(next(data.epochs())):
        assert start < batch.column("x").buffers()[1].address < start + size
        del batch


def test_polars(dataset):
    polars = pytest.importorskip("polars", reason="no polars (pip install polars)")
    assert polars.DataFrame(next(dataset([4] * 10).epochs()))["x"].to_list() == NUMBERS


def test_duckdb(dataset):
    duckdb = pytest.importorskip("duckdb", reason="no DuckDB (pip install duckdb)")
    connection = duckdb.connect()
    connection.register("epoch", next(dataset([4] * 10).epochs()))
    assert connection.sql("select sum(x) from epoch").fetchall() == [(sum(NUMBERS),)]
