"""Distributed matrices of pyspark.mllib, to ranks and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.mllib.linalg import DenseMatrix
    from pyspark.mllib.linalg.distributed import BlockMatrix, CoordinateMatrix, IndexedRowMatrix, RowMatrix

    from supply.spark.ranks import Ranks


def java_matrix(data: Any) -> Any:
    """The JVM's object of a RowMatrix, IndexedRowMatrix, CoordinateMatrix or BlockMatrix; None: it is none of them."""
    wrapper = getattr(data, "_java_matrix_wrapper", None)
    return None if wrapper is None else wrapper._java_model


class MLlibMatrix:
    """What a matrix of ranks can be to MLlib.

    Distributed matrices read a copy of the rows that the ranks write now, as to_df(): until
    supply.spark.release(matrix), or the session's end. An array goes to the driver. The keys of the rows are the
    indices; of an array, the numbers of its rows. Raises RunError if rows have no keys, or keys that are no integers.
    """

    _ranks: Ranks
    _java: Any

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
        """A pyspark.mllib BlockMatrix."""
        from pyspark.mllib.linalg.distributed import BlockMatrix

        java = self._to_mllib("blockMatrix", rows_per_block, columns_per_block)
        return BlockMatrix(java, rows_per_block, columns_per_block)

    def to_local(self) -> DenseMatrix:
        """A pyspark.mllib DenseMatrix of all values, in this process, at most 2 GB."""
        from pyspark.mllib.linalg import DenseMatrix

        rows, columns = self._java.rows(), self._java.columns()
        values = self.to_numpy().ravel()  # type: ignore[attr-defined]
        return DenseMatrix(rows, columns, values, isTransposed=True)

    def _to_mllib(self, name: str, *arguments: Any) -> Any:
        to_mllib = getattr(self._ranks._jvm.supply.linalg.ToMLlib, name)
        return self._ranks._ask(lambda: to_mllib(self._java, *arguments))
