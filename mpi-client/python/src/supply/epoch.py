"""One epoch of a SupplyDataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

if TYPE_CHECKING:
    from supply.torch import SupplyDataset


class Epoch(IterableDataset):
    """The batches of one epoch, made by SupplyDataset.epochs(). Read it once, before you take the next epoch.

    number: number of the epoch, from 0.
    dataset: the SupplyDataset.
    """

    def __init__(self, dataset: SupplyDataset, number: int) -> None:
        super().__init__()
        self.dataset = dataset
        self.number = number

    def __iter__(self) -> Iterator[Any]:
        return self.dataset.batches_of(self.number)

    def __len__(self) -> int:
        """Batches of this rank in this epoch. TypeError if Spark has not counted them, and in an epoch that resumes."""
        return self.dataset.length_of(self.number)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as a stream of record batches, one for each block, for pyarrow, polars or DuckDB. Needs pyarrow.

        The record batches are copies, unless zero_copy=True. The options for batches do not apply.
        """
        return self.dataset.record_batches_of(self.number).__arrow_c_stream__()

    def __repr__(self) -> str:
        return f"<supply.torch.Epoch {self.number}>"
