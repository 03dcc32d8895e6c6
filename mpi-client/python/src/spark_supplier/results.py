"""The rank's part of a result: rows that Spark reads as a DataFrame."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy

from spark_supplier import _core
from spark_supplier.arguments import MASK_SUFFIX
from spark_supplier.closing import Closing, in_utf8, leave_to_parent
from spark_supplier.errors import ColumnError, SupplyError
from spark_supplier.result_schema import fields_of

if TYPE_CHECKING:
    import pandas

Batch = Union["pandas.DataFrame", Mapping[str, Any], Any]
Begin = Callable[[str, "list[_core.ResultField]"], _core.Result]


class ResultWriter(Closing):
    """Writes a result of Reader.results() or create_results(). Leaving the `with` block seals it.

    An exception that leaves the block aborts the result with its text. Spark can read the result when every rank has
    sealed its part. It reads no row of an aborted one, and fails with the exception's text.
    """

    # received: columns that a batch may have though the schema does not. masked: whose nulls a mask beside them says.
    def __init__(
        self, begin: Begin, name: str, schema: Any = None, received: Iterable[str] = (), masked: Iterable[str] = ()
    ) -> None:
        self._begin = begin
        self._name = name
        # Those of the schema, or of the first batch, and their types of pyarrow for batches of other kinds.
        self._fields: list[_core.ResultField] = []
        self._kinds: dict[str, Any] = {}
        self._masks = {column: column + MASK_SUFFIX for column in masked}
        self._left_out = {*received, *self._masks.values()}
        self._core: _core.Result | None = None
        self._is_closed = False
        # Held by a thread that opens it: the first batch says which types the others must have.
        self._opening = threading.RLock()
        if schema is not None:
            self._open(fields_of(schema))

    def write(self, batch: Batch) -> None:
        """Appends the rows of a batch. The values are copied.

        Parameters
        ----------
        batch : Arrow data, pandas.DataFrame, or dict of str to array, tensor or list
            Anything with __arrow_c_array__ or __arrow_c_stream__ (pyarrow, polars), a pandas DataFrame without its
            index, or a dict by column. An array of shape (rows, N) is a list of N numbers for each row, of (rows, N, M)
            N lists of M numbers. Jagged and lists of tensors are lists of any length, a dict by field is a struct. None
            in a list, and NaT, are null; NaN is a number. float16 and bfloat16 become float32. All but Arrow data need
            pyarrow.

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
            self._write_arrow(batch, _core.result_fields(schema), lambda core: core.write_arrow(schema, array))
        elif hasattr(batch, "__arrow_c_stream__"):
            stream = batch.__arrow_c_stream__()
            self._write_arrow(batch, _core.stream_fields(stream), lambda core: core.write_stream(stream))
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
                self._open(of_batch)
        assert self._core is not None
        return self._core

    def _write_arrow(self, batch: Any, fields: list[_core.ResultField], write: Callable[[_core.Result], None]) -> None:
        core = self._opened(fields)
        forms = {field[0]: field[1] for field in self._fields}
        if any(field[1].startswith("+w:") and forms.get(field[0]) == "+l" for field in fields):
            # Of one length, for a column of lists of any length.
            import pyarrow

            table = pyarrow.table(batch)
            self._write_columns(dict(zip(table.column_names, table.columns)))
        else:
            write(core)

    def _write_columns(self, batch: Mapping[str, Any]) -> None:
        try:
            import pyarrow
        except ImportError:
            raise SupplyError(
                f"result '{self._name}': a batch of arrays, tensors or lists needs pyarrow: pip install "
                "'spark-supplier[arrow]'"
            ) from None

        with self._opening if self._core is None else contextlib.nullcontext():
            columns = self._columns(batch)
            lengths = {name: len(column) for name, column in columns.items()}
            if len(set(lengths.values())) > 1:
                listed = ", ".join(f"'{name}' {rows}" for name, rows in lengths.items())
                raise SupplyError(f"result '{self._name}': the columns have different numbers of rows: {listed}")
            if self._core is None:
                fields = [
                    pyarrow.field(name, column.type, column.null_count > 0 or _may_have_nulls(batch[name]))
                    for name, column in columns.items()
                ]
                self._opened(_core.result_fields(pyarrow.schema(fields).__arrow_c_schema__()))
        assert self._core is not None
        rows = pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        self._core.write_arrow(*rows.__arrow_c_array__())

    def _columns(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """As arrays of Arrow."""
        from spark_supplier.result_columns import array_of, arrow_field

        if self._core is None:
            return {name: array_of(name, values, None) for name, values in batch.items()}
        for missing in (field[0] for field in self._fields if field[0] not in batch):
            raise SupplyError(f"result '{self._name}': column '{missing}' is missing in this batch")
        if len(self._kinds) < len(self._fields):
            self._kinds = {field[0]: arrow_field(field).type for field in self._fields}
        for unknown in (name for name in batch if name not in self._kinds and name not in self._left_out):
            raise SupplyError(f"result '{self._name}': it has no column '{unknown}': leave it out, or pass schema=")
        for name, mask in self._masks.items():
            if name in self._kinds and mask not in batch:
                raise ColumnError(
                    f"column '{name}' has nulls='mask': write '{mask}' beside it, so that nulls come back"
                )
        return {
            name: array_of(name, batch[name], kind, batch.get(self._masks[name]) if name in self._masks else None)
            for name, kind in self._kinds.items()
        }


def _may_have_nulls(values: Any) -> bool:
    """Whether such values of a later batch may have nulls."""
    is_numpy = isinstance(values, numpy.ndarray) and not isinstance(values, numpy.ma.MaskedArray)
    return not hasattr(values, "detach") and not (is_numpy and values.dtype.kind in "biuf")


def _is_pandas(batch: Any) -> bool:
    return type(batch).__module__.partition(".")[0] == "pandas" and hasattr(batch, "columns")


def _columns_of_pandas(frame: Any) -> dict[str, Any]:
    if not frame.columns.is_unique:
        raise SupplyError(f"the DataFrame has two columns of one name: {list(frame.columns)}: rename one")
    return {str(name): series for name, series in frame.items()}
