"""A matrix that ranks hold, as Python sees it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from supply.spark.mllib import MLlibMatrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from supply.spark.ranks import Ranks


class Matrix(MLlibMatrix):
    """A handle of a matrix. The ranks free it when Python no longer has the handle.

    `A.T @ B` and `A @ B` call routines of libsupply_linalg: the results are matrices, too.
    """

    def __init__(self, ranks: Ranks, java: Any, drop: Callable[[Any], None]) -> None:
        self._ranks = ranks
        self._java = java
        # The ranks are notified with the next command: this may run in any thread.
        self._finalizer = weakref.finalize(self, drop, java)
        self._finalizer.atexit = False

    @property
    def shape(self) -> tuple[int, int]:
        """(rows on all ranks, columns)."""
        return self._java.rows(), self._java.columns()

    @property
    def T(self) -> Transposed:  # noqa: N802  as numpy has it
        """The transpose, for products only: nothing is computed."""
        return Transposed(self._ranks, self)

    def __matmul__(self, other: Matrix) -> Matrix:
        product: Matrix = self._ranks.call("multiply", self, other)
        return product

    def to_numpy(self) -> numpy.ndarray:
        """All values in this process: float64, of `shape`; one-dimensional if it is an array of one column or row.

        The array is read-only. Raises RunError above 2 GB.
        """
        values = numpy.frombuffer(self._ranks._ask(self._java.toBytes), dtype="<f8").reshape(self.shape)
        return values.ravel() if self._java.isArray() and 1 in self.shape else values

    def to_df(self) -> DataFrame:
        """Its rows as a DataFrame: the columns "key", if they have keys, and "row", an array of doubles.

        Spark reads a copy that the ranks write now, where they are, also when the ranks have ended. It takes memory
        until supply.spark.release(df), or until the session ends.
        """
        return self._ranks._df_of(self)

    def release(self) -> None:
        """Frees its memory on the ranks now. The handle must not be used any more."""
        if self._finalizer.detach():
            self._ranks._ask(self._java.drop)

    def __repr__(self) -> str:
        return f"<Matrix {self.shape[0]} x {self.shape[1]}>"


class Transposed:
    """The transpose of a matrix, as the left side of a product."""

    def __init__(self, ranks: Ranks, matrix: Matrix) -> None:
        self._ranks = ranks
        self.T = matrix

    def __matmul__(self, other: Matrix) -> Matrix:
        arguments = ("gram", other) if other is self.T else ("transpose_multiply", self.T, other)
        product: Matrix = self._ranks.call(*arguments)
        return product
