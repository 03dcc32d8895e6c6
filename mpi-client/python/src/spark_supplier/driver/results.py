"""Rows of ranks as DataFrames: what Supplier.run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from spark_supplier.arguments import brief
from spark_supplier.driver.cancellable import run_cancellable
from spark_supplier.driver.frame_checks import check_is_frame
from spark_supplier.driver.sessions import ClassicSession, session_of
from spark_supplier.driver.statistics import RunStatistics

if TYPE_CHECKING:
    from pyspark.mllib.linalg.distributed import DistributedMatrix


_Value = TypeVar("_Value")


@dataclass(repr=False)
class RunResult(Generic[_Value]):
    """What a call of Supplier.run with results= returns.

    The rows take memory on the nodes of the ranks until release(), or the end of a `with` block. Without these, Spark
    releases them some time after your program has no DataFrame of them any more; over Spark Connect, only when the
    server ends.

    Attributes
    ----------
    value : object
        What rank 0's call has returned.
    rows : DataFrame
        The rows of all ranks, which Spark reads where they are.
    statistics : RunStatistics
        How the time was spent, and what rank 0 reported.

    Examples
    --------
    >>> from spark_supplier import Supplier, session
    >>> def keys(data):
    ...     with data.results() as out:
    ...         for batch in data:
    ...             out.write(batch)
    >>> with Supplier(ranks=1, backend=None).run(keys, session().range(5), results="id") as found:
    ...     found.rows.count()
    5
    """

    value: _Value
    rows: DataFrame
    statistics: RunStatistics
    _is_released: bool = field(default=False, init=False)

    def release(self) -> None:
        """Removes the rows on all nodes. Spark has copied nothing, so no DataFrame of them can be computed afterwards.

        A second call does nothing.

        Raises
        ------
        RunError
            A node does not answer.
        """
        if not self._is_released:
            release(self.rows)
            self._is_released = True

    def __enter__(self) -> RunResult[_Value]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"RunResult(value={brief(self.value)}, rows={self.rows!r})"


def java_matrix(data: Any) -> Any:
    """The JVM's object of a RowMatrix, IndexedRowMatrix, CoordinateMatrix or BlockMatrix; None: it is none of them."""
    wrapper = getattr(data, "_java_matrix_wrapper", None)
    return None if wrapper is None else wrapper._java_model


def release(df: DataFrame | DistributedMatrix) -> None:
    """Removes the files of all results that a DataFrame reads, on all nodes.

    Spark has copied nothing: neither df nor another DataFrame of these results can be computed afterwards, unless it is
    cached. Without this call, the files stay until the session ends; over Spark Connect, until the server ends.

    Parameters
    ----------
    df : DataFrame or distributed matrix
        Also a matrix of MLlib that came from ranks.

    Raises
    ------
    RunError
        It reads no result, or a node does not answer.
    """
    matrix = java_matrix(df)
    if matrix is None:
        check_is_frame(df)
    session = session_of(df.sparkSession if matrix is None else SparkSession(df._java_matrix_wrapper._sc))
    session.check("the session of df")
    if matrix is None:
        released = df.write.format("supply").mode("append").option("release", "true")
        run_cancellable(session, released.save)
    else:
        assert isinstance(session, ClassicSession)
        run_cancellable(session, lambda: session.jvm.supply.linalg.ToMLlib.release(matrix))
