"""A matrix that ranks hold, as Python sees it, and distributed matrices of pyspark.mllib to ranks and back."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy
from pyspark.sql import SparkSession

from spark_supplier.driver import results
from spark_supplier.driver.sessions import ClassicSession, run_cancellable, session_of
from spark_supplier.errors import RunError
from spark_supplier.jagged import on_host

if TYPE_CHECKING:
    import torch
    from pyspark.mllib.linalg import DenseMatrix
    from pyspark.mllib.linalg.distributed import (
        BlockMatrix,
        CoordinateMatrix,
        DistributedMatrix,
        IndexedRowMatrix,
        RowMatrix,
    )
    from pyspark.sql import DataFrame

    from spark_supplier.offload.calls import Held
    from spark_supplier.offload.matrix_ranks import MatrixRanks


def is_array(data: Any) -> bool:
    """Whether it is an array or a tensor of any library, also of a device."""
    return hasattr(type(data), "__dlpack__")


def array_of(data: Any) -> numpy.ndarray:
    """The values of an array or a tensor, as ranks have them. The array has one or two dimensions."""
    if isinstance(data, numpy.ma.MaskedArray) and numpy.ma.is_masked(data):
        raise RunError("the array has masked values, and a matrix of ranks has none: fill them, as by data.filled(0)")
    try:
        values = numpy.asarray(on_host(data)).astype("<f8", casting="same_kind", copy=False)
    except TypeError as error:
        raise RunError(f"the array cannot be a matrix of ranks, which has 64-bit numbers: {error}") from error
    if values.ndim not in (1, 2) or values.size == 0:
        raise RunError(f"the array has the shape {values.shape}: it must have one or two dimensions, and values")
    return values


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
        results.release(df)
        return
    session = session_of(SparkSession(df._java_matrix_wrapper._sc))
    session.check("the session of df")
    assert isinstance(session, ClassicSession)
    run_cancellable(session, lambda: session.jvm.supply.linalg.ToMLlib.release(matrix))


class MLlibMatrix:
    """What a matrix of ranks can be to MLlib.

    Distributed matrices read a copy of the rows that the ranks write now, as to_df(). An array goes to the driver. The
    keys of the rows are the indices; of an array, the numbers of its rows. Raises RunError if rows have no keys, or
    keys that are no integers, and over Spark Connect, which has no distributed matrices: there to_df() has the rows.
    """

    shape: tuple[int, int]
    _ranks: MatrixRanks
    _held: Held

    def to_row_matrix(self) -> RowMatrix:
        """A pyspark.mllib RowMatrix: the rows in the order of the ranks, without keys."""
        from pyspark.mllib.linalg.distributed import RowMatrix

        return RowMatrix(self._to_mllib("rowMatrix"))

    def to_indexed_row_matrix(self) -> IndexedRowMatrix:
        """A pyspark.mllib IndexedRowMatrix."""
        from pyspark.mllib.linalg.distributed import IndexedRowMatrix

        return IndexedRowMatrix(self._to_mllib("indexedRowMatrix"))

    def to_coordinate_matrix(self) -> CoordinateMatrix:
        """A pyspark.mllib CoordinateMatrix."""
        from pyspark.mllib.linalg.distributed import CoordinateMatrix

        return CoordinateMatrix(self._to_mllib("coordinateMatrix"))

    def to_block_matrix(self, rows_per_block: int = 1024, columns_per_block: int = 1024) -> BlockMatrix:
        """A pyspark.mllib BlockMatrix.

        Parameters
        ----------
        rows_per_block, columns_per_block : int, default 1024
            Of its blocks.
        """
        from pyspark.mllib.linalg.distributed import BlockMatrix

        java = self._to_mllib("blockMatrix", rows_per_block, columns_per_block)
        return BlockMatrix(java, rows_per_block, columns_per_block)

    def to_local(self) -> DenseMatrix:
        """A pyspark.mllib DenseMatrix of all values, in this process, at most 2 GB."""
        from pyspark.mllib.linalg import DenseMatrix

        rows, columns = self.shape
        values = self.to_numpy().ravel()  # type: ignore[attr-defined]
        return DenseMatrix(rows, columns, values, isTransposed=True)

    def _to_mllib(self, name: str, *arguments: Any) -> Any:
        linalg = self._ranks._jvm.supply.linalg
        ranks, matrix = self._held.ranks.id, self._held.name
        return self._ranks._ask(
            lambda: getattr(linalg.ToMLlib, name)(linalg.NamedRanks.apply(ranks).matrix(matrix), *arguments)
        )


class Matrix(MLlibMatrix):
    """A handle of a matrix that ranks hold. The ranks free it when Python no longer has the handle.

    `A.T @ B` and `A @ B` call routines of libsupply_linalg: the results are matrices, too. MatrixRanks.matrix() and
    call() make matrices.

    Attributes
    ----------
    shape : tuple of int
        (rows on all ranks, columns).

    Examples
    --------
    ::

        with MatrixRanks(spark, ranks=4) as ranks:
            a = ranks.matrix(df, "features")
            gram = (a.T @ a).to_numpy()        # float64, shape (columns, columns)
    """

    def __init__(self, ranks: MatrixRanks, held: Held, drop: Callable[[Held], None]) -> None:
        self._ranks = ranks
        self._held = held
        self.shape: tuple[int, int] = held.shape
        # The ranks are notified with the next command: this may run in any thread.
        self._finalizer = weakref.finalize(self, drop, held)
        self._finalizer.atexit = False

    @property
    def T(self) -> Transposed:
        """The transpose, for products only: nothing is computed."""
        return Transposed(self._ranks, self)

    # NumPy would take it for a number.
    __array_ufunc__ = None

    def __matmul__(self, other: Matrix) -> Matrix:
        product: Matrix = self._ranks.call("multiply", self, other)
        return product

    def to_numpy(self) -> numpy.ndarray:
        """All values in this process.

        Returns
        -------
        numpy.ndarray
            Read-only, float64, of `shape`; one-dimensional if it is an array of one column or row.

        Raises
        ------
        RunError
            It has more than 2 GB.
        """
        values = numpy.frombuffer(self._ranks._ask(self._held.read), dtype="<f8").reshape(self.shape)
        return values.ravel() if self._held.is_array and 1 in self.shape else values

    def to_torch(self, device: torch.device | str | int = "cpu") -> torch.Tensor:
        """All values as a tensor of its own, through this process's memory.

        CuPy and JAX take the tensor without a copy: cupy.from_dlpack(matrix.to_torch("cuda")).

        Parameters
        ----------
        device : torch.device, str or int, default "cpu"
            Where the tensor is.

        Returns
        -------
        torch.Tensor
            As to_numpy().
        """
        import torch

        return torch.tensor(self.to_numpy(), device=device)

    def to_df(self) -> DataFrame:
        """Its rows as a DataFrame.

        Spark reads a copy that the ranks write now, where they are, also when the ranks have ended. It takes memory
        until offload.release(df), or until the session ends.

        Returns
        -------
        pyspark.sql.DataFrame
            The columns "key", if the rows have keys, and "row", an array of doubles.
        """
        return self._ranks._df_of(self)

    def release(self) -> None:
        """Frees its memory on the ranks now. The handle must not be used any more."""
        if self._finalizer.detach() and self._ranks._is_open:
            self._ranks._ask(self._held.drop)

    def __repr__(self) -> str:
        return f"<Matrix {self.shape[0]} x {self.shape[1]}{'' if self._finalizer.alive else ', released'}>"


class Transposed:
    """The transpose of a matrix, as the left side of a product."""

    def __init__(self, ranks: MatrixRanks, matrix: Matrix) -> None:
        self._ranks = ranks
        self.T = matrix

    def __matmul__(self, other: Matrix) -> Matrix:
        arguments = ("gram", other) if other is self.T else ("transpose_multiply", self.T, other)
        product: Matrix = self._ranks.call(*arguments)
        return product
