"""The rank's part of a result: rows that Spark reads as a DataFrame."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from spark_supplier import _core
from spark_supplier.closing import Closing, in_utf8, leave_to_parent
from spark_supplier.errors import SupplyError
from spark_supplier.result_columns import column_of
from spark_supplier.result_nested import Column
from spark_supplier.result_schema import completed, fields_of, is_complete

if TYPE_CHECKING:
    import pandas

Batch = Union["pandas.DataFrame", Mapping[str, Any], Any]
Begin = Callable[[str, "list[_core.ResultField]"], _core.Result]


class ResultWriter(Closing):
    """Writes a result of Reader.results() or create_results(). Leaving the `with` block seals it.

    An exception that leaves the block aborts the result with its text. Spark can read the result when every rank has
    sealed its part. It reads no row of an aborted one, and fails with the exception's text.
    """

    def __init__(self, begin: Begin, name: str, schema: Any = None) -> None:
        self._begin = begin
        self._name = name
        # Those of the schema; when the result is open, those of its file.
        self._fields = None if schema is None else fields_of(schema)
        self._core: _core.Result | None = None
        self._is_closed = False
        # Held by a thread that opens it: the first batch says which types the others must have.
        self._opening = threading.RLock()
        if self._fields is not None and is_complete(self._fields):
            self._open(self._fields)

    def write(self, batch: Batch) -> None:
        """Appends the rows of a batch. The values are copied.

        Parameters
        ----------
        batch : Arrow data, pandas.DataFrame, or dict of str to array, tensor or list
            Anything with __arrow_c_array__ or __arrow_c_stream__ (pyarrow, polars), a pandas DataFrame without its
            index, or a dict by column. An array of shape (rows, N) is a list of N numbers for each row, of (rows, N, M)
            N lists of M numbers. Jagged and lists of tensors are lists of any length, a dict by field is a struct. None
            in a list, and NaT, are null; NaN is a number. float16 and bfloat16 become float32.

        Raises
        ------
        ColumnError, SupplyError
            The batch must have the columns of the schema, or of the first batch, in any order. The text names the
            column and what to do; the rows of that batch are not written then. Of a stream of record batches, those
            before it are.
        """
        if self._is_closed:
            raise SupplyError(f"result '{self._name}' is sealed or aborted: write in its `with` block")
        if _is_pandas(batch):
            self._write_columns(_columns_of_pandas(batch))
        elif isinstance(batch, Mapping):
            self._write_columns(batch)
        elif hasattr(batch, "__arrow_c_array__"):
            schema, array = batch.__arrow_c_array__()
            self._opened(_core.result_fields(schema)).write_arrow(schema, array)
        elif hasattr(batch, "__arrow_c_stream__"):
            stream = batch.__arrow_c_stream__()
            self._opened(_core.stream_fields(stream)).write_stream(stream)
        else:
            raise SupplyError(
                f"result '{self._name}': {type(batch).__name__} is no batch: write a record batch or table of Arrow, "
                "a pandas DataFrame, or a dict of arrays, tensors and lists by column"
            )

    @property
    def rows(self) -> int:
        """The rows that were written so far."""
        return 0 if self._core is None else self._core.rows

    def close(self) -> None:
        """Seals the result.

        Raises
        ------
        SupplyError
            There is no schema, because nothing was written.
        """
        if self._is_closed:
            return
        if self._core is None and self._fields is not None:
            self._opened([])
        if self._core is None:
            reason = (
                f"result '{self._name}': this rank has written nothing, so its columns are not known: pass schema= to "
                "results()"
            )
            self.abort(reason)
            raise SupplyError(reason)
        try:
            self._core.seal()
        except SupplyError as error:
            self.abort(str(error))
            raise
        self._is_closed = True

    def abort(self, reason: str) -> None:
        """Says why this rank has no result.

        Parameters
        ----------
        reason : str
            The text with which Spark fails when it reads the result.
        """
        if self._is_closed:
            return
        with self._opening:
            if self._core is None:
                # Spark reads the reason, and no column.
                self._open([("aborted", "b", "", False, [])])
        self._is_closed = True
        assert self._core is not None
        self._core.abort(in_utf8(reason))

    def _open(self, fields: list[_core.ResultField]) -> None:
        self._fields = fields
        self._core = self._begin(self._name, fields)
        leave_to_parent(self._core)
        # At Python's exit, too: otherwise Spark would say that the rank was killed.
        weakref.finalize(self, self._core.abort, f"the rank dropped result '{self._name}' and did not seal it")

    def _opened(self, of_batch: list[_core.ResultField]) -> _core.Result:
        """of_batch: the fields of the first batch."""
        with self._opening:
            if self._core is None:
                self._open(of_batch if self._fields is None else completed(self._fields, of_batch))
        assert self._core is not None
        return self._core

    def _write_columns(self, batch: Mapping[str, Any]) -> None:
        with self._opening if self._core is None else contextlib.nullcontext():
            if self._fields is not None:
                self._opened([])
            columns = self._columns(batch)
            lengths = {name: column.rows for name, column in columns.items()}
            if len(set(lengths.values())) > 1:
                listed = ", ".join(f"'{name}' {rows}" for name, rows in lengths.items())
                raise SupplyError(f"result '{self._name}': the columns have different numbers of rows: {listed}")
            core = self._opened([column.field(name) for name, column in columns.items()])
        assert self._fields is not None
        core.write([buffers for field in self._fields for buffers in columns[field[0]].buffers()])

    def _columns(self, batch: Mapping[str, Any]) -> dict[str, Column]:
        if self._fields is None:
            return {name: column_of(name, values, None) for name, values in batch.items()}
        names = [field[0] for field in self._fields]
        for missing in (name for name in names if name not in batch):
            raise SupplyError(f"result '{self._name}': column '{missing}' is missing in this batch")
        for unknown in (name for name in batch if name not in names):
            raise SupplyError(f"result '{self._name}': it has no column '{unknown}': leave it out, or pass schema=")
        return {field[0]: column_of(field[0], batch[field[0]], field) for field in self._fields}


def _is_pandas(batch: Any) -> bool:
    return type(batch).__module__.partition(".")[0] == "pandas" and hasattr(batch, "columns")


def _columns_of_pandas(frame: Any) -> dict[str, Any]:
    if not frame.columns.is_unique:
        raise SupplyError(f"the DataFrame has two columns of one name: {list(frame.columns)}: rename one")
    return {str(name): series for name, series in frame.items()}
