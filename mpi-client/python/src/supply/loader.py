"""A DataLoader that counts what it hands out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch.utils.data

from supply.epoch import Epoch
from supply.errors import ConfigError
from supply.worker_memory import PREFETCH_FACTOR
from supply.worker_side import count_in_worker

if TYPE_CHECKING:
    from supply.torch import SupplyDataset


class DataLoader(torch.utils.data.DataLoader):
    """torch.utils.data.DataLoader for a SupplyDataset or an Epoch, with workers and an exact state_dict().

    The process that has the pair gives each batch to a worker, which transforms it. The loop gets the batches in
    Spark's order.

    options: as for torch.utils.data.DataLoader. A SupplyDataset makes whole batches, so batch_size must be None.
    """

    def __init__(self, dataset: SupplyDataset | Epoch, batch_size: None = None, **options: Any) -> None:
        if batch_size is not None:
            raise ConfigError("set the size with SupplyDataset(batch_size=...): leave out that of the DataLoader")
        if not options.get("in_order", True):
            raise ConfigError("in_order=False: state_dict() needs the order of the batches: leave it out")
        if options.get("num_workers"):
            prefetch_factor = options.get("prefetch_factor") or PREFETCH_FACTOR
            options["worker_init_fn"] = partial(count_in_worker, options.get("worker_init_fn"), prefetch_factor)
        super().__init__(dataset, batch_size=None, **options)

    def __iter__(self) -> Iterator[Any]:
        batches = super().__iter__()
        return self._counted(batches) if self.num_workers else batches

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        dataset: SupplyDataset = self.dataset.dataset if isinstance(self.dataset, Epoch) else self.dataset
        for batch in batches:
            dataset._count_batch()
            yield batch
            del batch
        dataset._finish_epoch()
