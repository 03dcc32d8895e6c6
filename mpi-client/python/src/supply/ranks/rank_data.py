"""The data set that a rank's function gets."""

from __future__ import annotations

from supply.pair import Supply
from supply.ranks.job import DataSpec
from supply.ranks.messages import Progress
from supply.torch import SupplyDataset


class RankData(SupplyDataset):
    """A SupplyDataset with `validation`, the data set of the second DataFrame, or None."""

    def __init__(self, spec: DataSpec) -> None:
        super().__init__(spec.config, **spec.options)
        self.validation = None if spec.validation is None else RankData(spec.validation)

    @property
    def progress(self) -> Progress:
        """Any thread may ask."""
        if self._supply is None:
            return Progress(0, 0, None)
        return Progress(self._supply.ended_epoch + 1, self._supply.statistics.elements, self._supply.epoch_elements)

    @property
    def is_at_end(self) -> bool:
        """Whether this rank has received all its data."""
        return all(supply is not None and supply.at_end_of_data for supply in self._supplies())

    def drain(self) -> None:
        """Receives and drops the rest of the data, so that Spark can supply the other ranks to their end."""
        for dataset in self._datasets():
            for _ in dataset._opened():
                pass

    def close(self) -> None:
        for dataset in self._datasets():
            SupplyDataset.close(dataset)

    def abort(self, reason: str) -> None:
        for dataset in self._datasets():
            SupplyDataset.abort(dataset, reason)

    def _datasets(self) -> list[RankData]:
        return [self] if self.validation is None else [self, self.validation]

    def _supplies(self) -> list[Supply | None]:
        return [dataset._supply for dataset in self._datasets()]
