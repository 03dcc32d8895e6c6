"""Rows of ranks as DataFrames: what Supplier.run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pyspark.sql import DataFrame

from spark_supplier.arguments import brief
from spark_supplier.driver.frame_checks import check_is_frame
from spark_supplier.driver.sessions import run_cancellable, session_of
from spark_supplier.driver.statistics import RunStatistics

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

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"RunResult(value={brief(self.value)}, rows={self.rows!r})"


def release(df: DataFrame) -> None:
    """Removes the files of all results that a DataFrame reads, on all nodes. It cannot be computed afterwards."""
    check_is_frame(df)
    session = session_of(df.sparkSession)
    session.check("the session of df")
    released = df.write.format("supply").mode("append").option("release", "true")
    run_cancellable(session, released.save)
