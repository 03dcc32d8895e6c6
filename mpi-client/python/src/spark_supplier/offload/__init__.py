"""Routines of MPI libraries on the rows of a DataFrame: ranks that hold them as matrices (docs/OFFLOAD.md)."""

from spark_supplier.offload.matrix import Matrix, release
from spark_supplier.offload.matrix_ranks import MatrixRanks

__all__ = ["Matrix", "MatrixRanks", "release"]
