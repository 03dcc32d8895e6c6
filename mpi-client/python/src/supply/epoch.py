"""One epoch of a SupplyDataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

from supply.batch import Batch
from supply.equal_steps import Step

if TYPE_CHECKING:
    import pyarrow

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
        return self.dataset._batches_of(self.number)

    def __len__(self) -> int:
        """Batches of this rank in this epoch. TypeError if Spark has not counted them, and in an epoch that resumes."""
        return self.dataset._length_of(self.number)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as a stream of record batches, one for each block, for pyarrow, polars or DuckDB. Needs pyarrow.

        The record batches are copies, unless zero_copy=True. Copies of values in place (Arrow's binary_view) are
        binary. The options for batches do not apply.
        """
        import pyarrow

        whole = pyarrow.schema(self.dataset._opened())
        schema = pyarrow.schema([self._field(whole.field(name)) for name in self.dataset.columns])
        return pyarrow.RecordBatchReader.from_batches(schema, self._record_batches(schema)).__arrow_c_stream__()

    def _record_batches(self, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        # Claimed now and not before: some libraries take a stream for its schema alone.
        for block in self.dataset._claim_blocks(self.number):
            rows = pyarrow.record_batch(block).select(schema.names)
            self.dataset._hand_out(Step(Batch(), block._place_after(len(block))))
            # Otherwise they would hold the block during the next wait.
            del block
            yield rows if self.dataset._is_zero_copy else _copied(rows, schema)
            del rows
        self.dataset._finish_epoch()

    def _field(self, field: pyarrow.Field) -> pyarrow.Field:
        import pyarrow

        # By its name: older versions of pyarrow lack the type.
        is_in_place = str(field.type) == "binary_view"
        return field.with_type(pyarrow.binary()) if is_in_place and not self.dataset._is_zero_copy else field

    def __repr__(self) -> str:
        return f"<supply.torch.Epoch {self.number}>"


def _copied(rows: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow

    # Of views, serialize() copies what lies between the values, too.
    columns = [column.cast(field.type) for column, field in zip(rows.columns, schema)]
    copy = pyarrow.record_batch(columns, schema=schema).serialize()
    return pyarrow.ipc.read_record_batch(copy, schema)
