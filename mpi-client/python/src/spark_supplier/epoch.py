"""One epoch of a Dataset: its blocks one after another, and a DataLoader that counts what it hands out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch.utils.data
from torch.utils.data import IterableDataset

from spark_supplier.batch import Batch
from spark_supplier.batches import OwnRows
from spark_supplier.block import Block
from spark_supplier.equal_steps import Step
from spark_supplier.errors import ConfigError, SupplyError
from spark_supplier.pair import Reader
from spark_supplier.times import EpochTimes
from spark_supplier.workers import PREFETCH_FACTOR, check_folder, count_in_worker, refuse_collation

if TYPE_CHECKING:
    import pyarrow

    from spark_supplier.torch import Dataset


class EpochBlocks:
    """Begins epochs of a Reader and skips the rest of earlier ones."""

    def __init__(self, supply: Reader, next_block: Callable[[], Block | None], times: EpochTimes, own: OwnRows) -> None:
        """next_block: waits for a block, as Reader.next_block(). times: where that, and the own rows, are counted."""
        self._own = own
        self._supply = supply
        self._wait_for_block = next_block
        self._times = times
        self._first: Block | None = None
        # The epoch that begin() has begun, from 0.
        self.begun: int | None = None

    def begin(self, wanted: int | None) -> bool:
        """Waits for the next epoch, or for the wanted one. False: the data has ended."""
        while True:
            first, self._first = self._first or self._next_block(), None
            if self._supply.at_end_of_data:
                return False
            epoch = self._supply.ended_epoch if first is None else first.epoch
            # The rest of an iteration that was broken off, and epochs that are not wanted.
            if (self.begun is not None and epoch <= self.begun) or (wanted is not None and epoch < wanted):
                # Otherwise it would be held during the next wait.
                del first
                continue
            self._first = first
            if wanted is not None and epoch > wanted:
                raise SupplyError(f"epoch {wanted} has passed: the next one is {epoch} (set_epoch)")
            self.begun = epoch
            return True

    def rest(self) -> Iterator[Block]:
        """The blocks of the epoch that has begun, as far as they are not received. It holds none while it waits."""
        block, self._first = self._first, None
        while block is not None:
            begin = block.first_element
            self._times.received += self._own.count(begin + len(block)) - self._own.count(begin)
            yield block
            del block
            block = self._next_block()

    def _next_block(self) -> Block | None:
        seconds = self._times.seconds
        # It may first wait for copies to a device.
        asked = perf_counter() - seconds.copying
        try:
            return self._wait_for_block()
        finally:
            seconds.spark += perf_counter() - seconds.copying - asked

    def place_of_end(self) -> str:
        """Where the data has ended, as a part of a sentence."""
        if self.begun is not None and self.begun > self._supply.ended_epoch:
            return f" in the middle of epoch {self.begun}"
        return f" after epoch {self._supply.ended_epoch}" if self._supply.ended_epoch >= 0 else ""


class Epoch(IterableDataset):
    """The batches of one epoch, made by Dataset.epochs(). Read it once, before you take the next epoch.

    Attributes
    ----------
    number : int
        Number of the epoch, from 0.
    dataset : Dataset
        The data set.
    """

    def __init__(self, dataset: Dataset, number: int) -> None:
        super().__init__()
        self.dataset = dataset
        self.number = number

    def __iter__(self) -> Iterator[Any]:
        refuse_collation()
        return self.dataset._batches_of(self.number)

    def __len__(self) -> int:
        """Batches of this rank in this epoch.

        Raises
        ------
        TypeError
            Spark has not counted them, or the epoch is the rest after a state.
        """
        return self.dataset._length_of(self.number)

    def __bool__(self) -> bool:
        return True

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as a stream of record batches, one for each block, for pyarrow, polars or DuckDB. Needs pyarrow.

        The record batches are copies, unless zero_copy=True. Copies of values in place (Arrow's binary_view) are
        binary. The options for batches do not apply.
        """
        import pyarrow

        whole = pyarrow.schema(self.dataset._opened())
        schema = pyarrow.schema([self._field(_field_of(whole, name)) for name in self.dataset.columns])
        batches = self.dataset._times.seconds.timed(self.dataset._alone(self._record_batches(schema)))
        return pyarrow.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__()

    def _record_batches(self, schema: pyarrow.Schema) -> Generator[pyarrow.RecordBatch, None, None]:
        import pyarrow

        # Claimed now and not before: some libraries take a stream for its schema alone.
        own = self.dataset._batches.own
        for block in self.dataset._claim_blocks(self.number):
            origin, count = block.first_element, len(block)
            rows = _selected(pyarrow.record_batch(block), schema)
            begin = own.next(origin) - origin
            while begin < count:
                end = min(own.end(origin + begin) - origin, count)
                self.dataset._hand_out(Step(Batch(), block._place_after(end)))
                run = rows if end - begin == count else rows.slice(begin, end - begin)
                yield run if self.dataset._is_zero_copy else _copied(run, schema)
                begin = own.next(origin + end) - origin
                del run
            # Otherwise they would hold the block during the next wait.
            del block, rows
        self.dataset._finish_epoch()

    def _field(self, field: pyarrow.Field) -> pyarrow.Field:
        import pyarrow

        # By its name: older versions of pyarrow lack the type.
        is_in_place = str(field.type) == "binary_view"
        return field.with_type(pyarrow.binary()) if is_in_place and not self.dataset._is_zero_copy else field

    def __repr__(self) -> str:
        return f"<spark_supplier.torch.Epoch {self.number}>"


def _place(fields: Sequence[pyarrow.Field], name: str) -> list[int]:
    """Where that column is, or the field of a struct, as "point.x"."""
    for place, field in enumerate(fields):
        if field.name == name:
            return [place]
    for place, field in enumerate(fields):
        if name.startswith(f"{field.name}.") and str(field.type).startswith("struct"):
            within = [field.type.field(index) for index in range(field.type.num_fields)]
            if found := _place(within, name[len(field.name) + 1 :]):
                return [place, *found]
    return []


def _field_of(schema: pyarrow.Schema, name: str) -> pyarrow.Field:
    place = _place(list(schema), name)
    # pyarrow raises KeyError for a name that it does not find.
    field = schema.field(place[0] if place else name)
    for place_within in place[1:]:
        inner = field.type.field(place_within)
        field = inner.with_nullable(field.nullable or inner.nullable)
    return field.with_name(name)


def _selected(rows: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow
    import pyarrow.compute

    if set(schema.names) <= set(rows.schema.names):
        return rows.select(schema.names)
    columns = []
    for name in schema.names:
        first, *within = _place(list(rows.schema), name)
        column = rows.column(first)
        columns.append(pyarrow.compute.struct_field(column, within) if within else column)
    return pyarrow.record_batch(columns, schema=schema)


def _copied(rows: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow

    # Of views, serialize() copies what lies between the values, too.
    columns = [column.cast(field.type) for column, field in zip(rows.columns, schema)]
    copy = pyarrow.record_batch(columns, schema=schema).serialize()
    return pyarrow.ipc.read_record_batch(copy, schema)


class DataLoader(torch.utils.data.DataLoader):
    """torch.utils.data.DataLoader for a Dataset or an Epoch, with workers and an exact state_dict().

    The process that has the buffer gives each batch to a worker, which transforms it. The loop gets the batches in
    Spark's order.

    Parameters
    ----------
    dataset : Dataset or Epoch
        It makes whole batches.
    batch_size : None
        Set the size with Dataset(batch_size=...).
    **options
        As for torch.utils.data.DataLoader, as num_workers. Those that choose or order rows are refused: Spark does
        that.

    Raises
    ------
    ConfigError
        An option is wrong.

    Examples
    --------
    >>> from spark_supplier import testing
    >>> from spark_supplier.torch import DataLoader
    >>> loader = DataLoader(testing.data({"x": [1, 2, 3, 4]}, batch_size=2))
    >>> next(iter(loader))["x"]
    tensor([1, 2])
    >>> state = loader.state_dict()
    >>> resumed = DataLoader(testing.data({"x": [1, 2, 3, 4]}, batch_size=2))
    >>> resumed.load_state_dict(state)
    >>> [batch["x"].tolist() for batch in resumed]
    [[3, 4]]
    """

    def __init__(self, dataset: Dataset | Epoch, batch_size: None = None, **options: Any) -> None:
        if batch_size is not None:
            raise ConfigError("set the size with Dataset(batch_size=...): leave out that of the DataLoader")
        if not options.get("in_order", True):
            raise ConfigError("in_order=False: state_dict() needs the order of the batches: leave it out")
        for name in ("shuffle", "sampler", "batch_sampler", "drop_last"):
            if options.get(name):
                raise ConfigError(
                    f"{name}: Spark divides the rows among the ranks, and shuffles them: leave it out. uneven='drop' "
                    "drops a last batch that is not full, as drop_last does, and gives all ranks equal steps"
                )
        if options.get("num_workers"):
            check_folder()
            prefetch_factor = options.get("prefetch_factor") or PREFETCH_FACTOR
            options["worker_init_fn"] = partial(count_in_worker, options.get("worker_init_fn"), prefetch_factor)
        super().__init__(dataset, batch_size=None, **options)

    @property
    def _data(self) -> Dataset:
        return self.dataset.dataset if isinstance(self.dataset, Epoch) else self.dataset

    def state_dict(self) -> dict[str, Any]:
        """The state after the batches that the loop was handed, also with workers: Dataset.state_dict().

        Returns
        -------
        dict
            What torch.save can save. Batches that workers have made, and the loop has not got, come again after it.
        """
        return self._data.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes after a state: Dataset.load_state_dict(). Call it before the first iteration.

        Parameters
        ----------
        state : dict
            What state_dict() of a loader or of its data set returned on this rank.
        """
        self._data.load_state_dict(state)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        batches = super().__iter__()
        return self._counted(batches) if self.num_workers else batches

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        dataset = self._data
        for batch in batches:
            dataset._count_batch()
            yield batch
            del batch
        dataset._finish_epoch()
