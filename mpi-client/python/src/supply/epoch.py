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
    """

    def __init__(self, dataset: SupplyDataset, number: int) -> None:
        super().__init__()
        self._dataset = dataset
        self.number = number

    def __iter__(self) -> Iterator[Any]:
        return self._dataset.batches_of(self.number)

    def __len__(self) -> int:
        """Batches of this rank in this epoch. TypeError if Spark has not counted them, and in an epoch that resumes."""
        return self._dataset.length_of(self.number)

    def __repr__(self) -> str:
        return f"<supply.torch.Epoch {self.number}>"
