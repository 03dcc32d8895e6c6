"""Dataset: the rows that Spark supplies, as a PyTorch data set."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from multiprocessing.context import get_spawning_popen
from time import perf_counter
from typing import Any, Literal, TypeVar

import torch
import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from spark_supplier.arguments import (
    BATCH_CHECKS,
    check_batches,
    column_names,
    limit_of,
    optional_size,
    refuse_unknown,
    whole_number,
)
from spark_supplier.batch import Batch, copied, moved, of_plain, plain
from spark_supplier.batches import Batches, Made
from spark_supplier.block import Block, known_position
from spark_supplier.block_values import BlockValues
from spark_supplier.closing import Closing
from spark_supplier.device import DeviceCopies, copies_to, cuda_device
from spark_supplier.epoch import DataLoader, Epoch, EpochBlocks
from spark_supplier.equal_steps import EqualSteps, Step
from spark_supplier.errors import ConfigError, SupplyError
from spark_supplier.forms import Forms
from spark_supplier.jagged import Jagged
from spark_supplier.opening import OPEN_OPTIONS, Config, extension
from spark_supplier.opening import open as open_supply
from spark_supplier.pair import Reader
from spark_supplier.results import ResultWriter
from spark_supplier.times import EpochStatistics, EpochTimes, Seconds
from spark_supplier.workers import Workers, WorkerSide, refuse_collation

__all__ = ["DataLoader", "Epoch", "EpochStatistics", "Jagged", "Dataset"]

Uneven = Literal["keep", "drop", "pad"]
Ragged = Literal["jagged", "list", "pad", "nested", "sparse"]
_Item = TypeVar("_Item")


class Dataset(Closing, IterableDataset):
    """Batches of the rows that Spark supplies to this rank.

    A batch is a dict by column of writable copies. Iterating over the data set gives the batches of its next epoch, as
    trainers want it that iterate once for each epoch. epochs() gives all epochs, with their numbers.

    Parameters
    ----------
    config, local_rank, **options
        As for spark_supplier.ranks.open(). The first iteration opens the rank's buffer. With `exchange`, all ranks must
        make their data sets in the same order, and take the same epochs.
    columns : sequence of str
        Names of the columns. "point.x" is a field of the struct "point", if no column has this name.
    batch_size : int
        Rows of a batch, for blocks of any size.
    transform : callable, optional
        Makes what the loop gets of a batch (a dict by column). In a DataLoader with workers, they call it.
    collate_fn : callable, optional
        Makes what the loop gets of a list of rows. Each row is a dict by column. Set only one of both.
    dtypes : dict of str to torch.dtype, optional
        Types of tensors by column, as {"label": torch.long}. The other columns keep Spark's types. A setting of dtypes,
        ragged or nulls for a list or a struct holds for everything in it; "point.x" is one field, "scores.values" the
        values of a map.
    ragged : dict of str to str, or str, optional
        Forms of lists, text or bytes of different lengths, by column, or one form for all lists. "jagged": Jagged;
        lists of numbers have this form if they are not named here. "list": a Python list, for each row a tensor, or str
        or bytes; text and lists of text have this form. "pad": a dense tensor, with zeros up to the longest of the
        batch. "nested": a torch.nested tensor with jagged layout. "sparse": of vectors of Spark that are structs of
        size, indices and values, a torch.sparse_csr tensor. Bytes that are not named must all have one length, and are
        a tensor of uint8.
    nulls : dict, optional
        By column, the value that a null gets: a number, for text a text, for bytes in a list or jagged bytes; or
        "mask": a null is 0 or empty, and the batch has a column NAME_mask of bool that is True for rows with a value.
        Of lists, both are for the values in them: a null list is empty, and the mask has the form of the column, with
        False for padding. Default: a null text is None, and a null elsewhere is an error.
    uneven : {"keep", "drop", "pad"}, default "keep"
        The end of an epoch if ranks have different numbers of rows. "keep": the last batch may be smaller, and ranks
        may have different numbers of batches. "drop": all ranks have as many batches as the rank with the fewest full
        ones. "pad": all ranks have as many rows as the rank with the most: the others repeat some. If Spark has not
        counted the rows, drop and pad need one all_reduce for each block.
    process_group : torch.distributed.ProcessGroup, optional
        The group for that, with tensors on the CPU. With workers it must serve nothing else. Default: a gloo group of
        its own; then all ranks must make their data sets in the same order. It waits for the other ranks for twice the
        timeout: each of them may first wait one timeout for Spark.
    zero_copy : bool, default False
        A batch inside one block is not copied. Do not change it in place (see Block.torch()); it occupies the block's
        place in the buffer while you keep it. A batch over several blocks is a copy, and so is one of values in place
        (--in-place of the Spark side) that do not lie at equal distances in their file.

    Attributes
    ----------
    columns : sequence of str
        As given.

    Raises
    ------
    ConfigError
        An option is wrong.

    Examples
    --------
    >>> from spark_supplier.torch import Dataset
    >>> def train(step):
    ...     with Dataset(columns=["data", "label"], batch_size=32) as dataset:
    ...         for epoch in dataset.epochs():
    ...             for batch in epoch:
    ...                 step(batch["data"], batch["label"])
    """

    def __init__(
        self,
        config: Config = None,
        local_rank: int | None = None,
        *,
        columns: Sequence[str],
        batch_size: int,
        transform: Callable[[Batch], Any] | None = None,
        collate_fn: Callable[[list[dict[str, Any]]], Any] | None = None,
        dtypes: Mapping[str, torch.dtype] | None = None,
        ragged: Mapping[str, Ragged] | Ragged | None = None,
        nulls: Mapping[str, Any] | None = None,
        uneven: Uneven = "keep",
        process_group: torch.distributed.ProcessGroup | None = None,
        zero_copy: bool = False,
        **options: Any,
    ) -> None:
        given = dict(locals())
        super().__init__()
        names = column_names(columns)
        for name, check in BATCH_CHECKS.items():
            check(name, given[name])
        check_batches({**given, "columns": names})
        if "position" in options:
            raise ConfigError("load_state_dict() sets the position: leave position out")
        refuse_unknown("Dataset", options, OPEN_OPTIONS)
        for size in ("ring", "block"):
            optional_size(size, options.get(size))
        self._pair = (config, local_rank)
        if options.get("exchange") is not None:
            # Here, because making a group is collective, and the first iteration may be in a thread of the workers.
            exchange = extension("exchange")
            options["exchange"] = exchange.exchange_of(options["exchange"])
            options["comm"] = exchange.transport_over(options.get("comm"), options.get("timeout"))
        self._options = options
        self._values = BlockValues(names, dtypes or {}, ragged or {}, nulls or {})
        self._batches = Batches(self._values, batch_size, dtypes or {}, zero_copy)
        # Workers copy them, and what is on a device is a copy.
        self._views = Batches(self._values, batch_size, dtypes or {}, zero_copy=True)
        self.columns = names
        self._is_zero_copy = zero_copy
        self._forms = Forms(ragged, names, transform, collate_fn)
        self._steps = EqualSteps(uneven, batch_size, process_group, limit_of(options.get("timeout")))
        self._times = EpochTimes()
        self._share_seconds(self._times.seconds)
        self._device: torch.device | None = None
        self._supply: Reader | None = None
        # Of a device, while the pair is open.
        self._copies: DeviceCopies | None = None
        self._end_copies: Callable[[], object] | None = None
        self._wanted_epoch: int | None = None
        self._blocks: EpochBlocks | None = None
        self._is_begun = False
        self._is_unread = False
        # The loop that reads an epoch.
        self._reading: weakref.ref[Generator[Any, None, None]] | None = None
        self._is_closed = False
        # Steps of a whole epoch, and of the one that has begun, as far as the ranks know them.
        self._whole_epoch: int | None = None
        self._this_epoch: int | None = None
        # After the last step that was handed out: the position, and what "pad" repeats.
        self._position: str | None = None
        self._last: Batch | None = None
        self._state_is_known = True
        # A loop that was left may still begin an epoch in a thread of its workers.
        self._lock = threading.RLock()
        self._workers = Workers(partial(_claim_for_workers, weakref.ref(self)))
        self._in_worker = WorkerSide(self._workers.address, self._forms)

    def to(self, device: torch.device | str | int) -> Dataset:
        """Lets the batches arrive on a CUDA device. It changes this data set, as torch.nn.Module.to() changes a module.

        Call it before the first iteration. The buffer is registered with CUDA, and blocks are copied to the device on a
        stream of their own, up to two ahead of the loop. Lists stay lists. A batch belongs to the stream that is
        current when the loop asks for it: on another stream, call wait_stream() and record_stream() as for any tensor.
        Blocks that are there are copied together, up to 8 MiB, if the buffer holds more than four blocks. Batches share
        the memory of such a copy, so a kept batch keeps it. Changing a batch in place counts as a change of the others
        of its block for autograd. `transform` and `collate_fn` get batches on the device. `zero_copy` has no effect.

        Parameters
        ----------
        device : torch.device, str or int
            The CUDA device. "cpu": in the host's memory, as without the call.

        Returns
        -------
        Dataset
            This data set.

        Raises
        ------
        SupplyError
            There is no such device, or the first iteration has begun. A DataLoader with workers raises it later: in
            their place the device copies while the loop computes.
        """
        if self._blocks is not None or self._copies is not None:
            raise SupplyError("to() is too late: the first iteration has begun, or results have")
        self._device = cuda_device(device)
        self._steps.device = self._device or torch.device("cpu")
        return self

    def epochs(self) -> Iterator[Epoch]:
        """Each epoch, to the end of the data. After a state was loaded, the first one is the rest of its epoch.

        The rest of an epoch that you do not read to its end is skipped. With "drop" and "pad" all ranks must take the
        same epochs.

        Yields
        ------
        Epoch
        """
        while self._begin():
            assert self._blocks is not None and self._blocks.begun is not None
            yield Epoch(self, self._blocks.begun)

    def set_epoch(self, epoch: int) -> None:
        """Makes an epoch the next one, as trainers say it. The rest of earlier epochs is skipped.

        Parameters
        ----------
        epoch : int
            From 0. Going back is an error of the next iteration.
        """
        self._wanted_epoch = whole_number("epoch", epoch, 0)

    def state_dict(self) -> dict[str, Any]:
        """The state after every batch that the loop was handed. Each rank saves its own state.

        Returns
        -------
        dict
            What torch.save can save. With uneven="pad" it has a copy of the last batch, which a rank repeats if nothing
            is left of its epoch.

        Raises
        ------
        SupplyError
            The batches went through the workers of another DataLoader than that of this module, which counts those that
            it hands out. epochs() knows the state again when you take the next epoch.
        """
        state: dict[str, Any] = {"version": 1, "position": self._known_position()}
        if self._last is not None:
            state["last"] = plain(copied(moved(self._last, "cpu")))
        return state

    def _known_position(self) -> str | None:
        """After every batch that the loop was handed."""
        if not self._state_is_known:
            raise SupplyError(
                "the batches went through workers, and torch.utils.data.DataLoader does not tell which of them the "
                "loop was handed, so the state of the data is not known: use spark_supplier.torch.DataLoader, or "
                "num_workers=0"
            )
        return None if self._position is None else known_position(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes after a state. Call it before the first iteration.

        Parameters
        ----------
        state : dict
            What state_dict() returned on this rank, in a run of the same plan (docs/RESTARTS.md).

        Raises
        ------
        SupplyError
            The data set is open already, as in a call of a Supplier, or the state has an unknown version.
        """
        if self._supply is not None:
            raise SupplyError("load_state_dict() is too late: the pair is open, and Spark knows where to begin")
        if state.get("version") != 1:
            raise SupplyError(f"this state has version {state.get('version')!r}, but only version 1 is known")
        self._position = state["position"]
        if "last" in state:
            self._last = Batch(of_plain(state["last"]))

    def _saves(self, state: Any) -> bool:
        """Whether there are checkpoints of a call, which then have a state."""
        return False

    def statistics(self) -> list[EpochStatistics]:
        """How this rank spent its time, by epoch. The last one may not have ended yet. Any thread may ask.

        The time of an epoch runs from the question for it to the question for the next one. In a program without
        another question, it runs to the last batch.

        Returns
        -------
        list of EpochStatistics
        """
        return self._times.rows()

    def __iter__(self) -> Iterator[Any]:
        refuse_collation()
        return self._batches_of(None)

    def begin(self) -> bool:
        """Waits until the next epoch has begun, which the next iteration reads.

        For trainers that ask for len() before the first epoch. With "drop" and "pad" all ranks must call it.

        Returns
        -------
        bool
            False: the data has ended.
        """
        with self._lock:
            self._is_begun = self._is_begun or self._begin()
            return self._is_begun

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch. It does not wait.

        Raises
        ------
        TypeError
            No epoch has begun (begin()), or Spark has not counted the rows (docs/ROWS.md).
        """
        return _known(self._whole_epoch, self._number())

    def __repr__(self) -> str:
        """Asks nothing of Spark, and opens nothing."""
        number = self._number()
        state = "closed" if self._is_closed else "not begun" if number is None else f"in epoch {number}"
        columns = ", ".join(self.columns)
        return f"<{type(self).__name__} of {columns:.200}: batches of {self._batches.batch_size}, {state}>"

    def __bool__(self) -> bool:
        """True. Without it, Python would ask for the length."""
        return True

    def close(self) -> None:
        """Closes the rank's buffer: Reader.close(). A closed data set cannot be read any more."""
        self._end(Reader.close)

    def abort(self, reason: str) -> None:
        """Closes the rank's buffer and tells Spark why: Reader.abort().

        Parameters
        ----------
        reason : str
            The text with which Spark's job fails.
        """
        self._end(lambda supply: supply.abort(reason))

    def _end(self, end: Callable[[Reader], None]) -> None:
        self._leave()
        supply, self._blocks, self._is_closed = self._supply, None, True
        if supply is None:
            return
        end_copies, self._copies, self._end_copies = self._end_copies, None, None
        try:
            if end_copies is not None:
                end_copies()
        finally:
            try:
                end(supply)
            finally:
                # An interrupted close() leaves it open.
                if supply.closed:
                    self._supply = None
                    self._workers.close()

    def results(self, name: str = "results", schema: Any = None) -> ResultWriter:
        """Begins this rank's part of a result, which Spark reads as a DataFrame: Reader.results().

        Parameters
        ----------
        name, schema
            As for Reader.results().

        Returns
        -------
        ResultWriter
        """
        return self._opened().results(name, schema)

    def _opened(self) -> Reader:
        """The pair. It is opened now, if it is not open."""
        supply = self._open()
        if self._device is not None and self._copies is None:
            try:
                self._copies, self._end_copies = copies_to(self._device, supply)
                self._copies.seconds = self._times.seconds
            except BaseException:
                # Nothing has been read: another try fails with the same text.
                self._supply = None
                raise
        return supply

    def _open(self) -> Reader:
        """As _opened(), but without its memory registered: the program may not have chosen its device yet."""
        self._require_open()
        if self._supply is None:
            self._supply = open_supply(*self._pair, position=self._position, **self._options)
        return self._supply

    def _require_open(self) -> None:
        if self._is_closed:
            raise SupplyError("this data set is closed: read it in its `with` block, or before close() and abort()")

    def _share_seconds(self, seconds: Seconds) -> None:
        """From now on counts time there."""
        self._times.seconds = self._steps.seconds = seconds

    def _number(self) -> int | None:
        """The epoch that has begun."""
        return None if self._blocks is None else self._blocks.begun

    def _begin(self) -> bool:
        """Begins the next epoch, or that of set_epoch(). False: the data has ended."""
        asked = perf_counter()
        try:
            with self._lock:
                return self._begin_alone()
        finally:
            self._times.seconds.answer(asked)

    def _begin_alone(self) -> bool:
        if self._workers.finish():
            self._finish_epoch()
        wanted, self._wanted_epoch = self._wanted_epoch, None
        if self._is_begun:
            self._is_begun = False
            if wanted in (None, self._number()):
                return True
        self._leave()
        self._times.ask()
        supply = self._opened()
        self._blocks = self._blocks or EpochBlocks(
            supply, supply.next_block if self._copies is None else partial(self._copies.next_block, supply),
            self._times, self._batches.own,
        )  # fmt: skip
        resumes = self._blocks.begun is None and self._position is not None
        if self._blocks.begun is not None:
            # An iteration that was broken off has left it. It would hold its block.
            self._last = None
        self._is_unread = self._blocks.begin(wanted)
        if self._is_unread:
            assert self._blocks.begun is not None
            self._times.begin(self._blocks.begun)
            self._whole_epoch, self._this_epoch = self._steps.agree(
                None if supply.epoch_elements is None else self._batches.own.count(supply.epoch_elements), resumes
            )
        return self._is_unread

    def _batches_of(self, number: int | None) -> Iterator[Any]:
        """The batches of an epoch that epochs() has begun, or of the next one (None). For Epoch."""
        return self._batches_in_process(number) if get_worker_info() is None else self._in_worker._batches_of(number)

    def _batches_in_process(self, number: int | None) -> Iterator[Any]:
        steps = self._alone(self._steps_of(self._claim_blocks(number), self._made))
        while (step := self._next_of(steps)) is not None:
            results = [self._forms(step.batch)]
            self._hand_out(step)
            # If another loop begins, this one holds no slot.
            del step
            yield results.pop()
        self._finish_epoch()

    def _alone(self, items: Generator[_Item, None, None]) -> Iterator[_Item]:
        """The same items. If another loop begins, this one ends with an error."""
        mine = self._reading = weakref.ref(items)
        yield from items
        if self._reading is not mine:
            raise SupplyError(
                "another loop over this data set has begun, or it was closed: one loop at a time can read it"
            )

    def _leave(self) -> None:
        """Ends the loop that reads, which would hold its block."""
        reading = None if self._reading is None else self._reading()
        self._reading = None
        if reading is not None:
            # Another thread may run it.
            with contextlib.suppress(ValueError):
                reading.close()

    def _next_of(self, steps: Iterator[Step]) -> Step | None:
        asked = perf_counter()
        if self._copies is None:
            step = next(steps, None)
        else:
            self._copies.follow()
            step = next(steps, None)
            if step is not None and self._copies is not None:
                self._copies.hand_over(step.batch)
        self._times.seconds.answer(asked)
        return step

    def __reduce__(self) -> tuple[Any, ...]:
        """For workers of the start methods spawn and forkserver."""
        if get_spawning_popen() is None:
            raise SupplyError("a data set cannot be copied or pickled: it reads a pair of its own process")
        self._workers.listen()
        return WorkerSide, (self._workers.address, self._forms)

    def _count_batch(self) -> None:
        """The loop has got the next batch of the workers. For DataLoader."""
        if self._workers.batches is None:
            raise SupplyError("another loop over this data set has begun")
        self._hand_out(self._workers.batches.handed_out())

    def _length_of(self, number: int) -> int:
        """The number of batches of an epoch that epochs() has begun. For Epoch."""
        return _known(self._this_epoch if number == self._number() else self._whole_epoch, number)

    def _claim_blocks(self, number: int | None) -> Iterator[Block]:
        """The blocks of an epoch, or of the next one (None). An epoch can be read once."""
        self._require_open()
        if number is None and not self._begin():
            raise SupplyError(
                f"the data has ended{self._blocks.place_of_end() if self._blocks else ''}: Spark supplies no more. "
                "Each loop over it is an epoch: set --epochs larger, if it is no stream that query.stop() has ended"
            )
        if number is not None and (number != self._number() or not self._is_unread):
            raise SupplyError(f"epoch {number} can be read once, and before epochs() gives the next one")
        self._is_unread = False
        assert self._blocks is not None
        return self._blocks.rest()

    def _made(self, blocks: Iterator[Block]) -> Generator[Made, None, None]:
        """The batches of blocks, on the device if there is one."""
        if self._copies is None:
            return self._batches.of(blocks)
        assert self._supply is not None
        return self._views.of_columns(self._copies.ahead(blocks, self._supply, self._values))

    def _steps_of(
        self, blocks: Iterator[Block], make: Callable[[Iterator[Block]], Generator[Made, None, None]]
    ) -> Generator[Step, None, None]:
        """All steps of an epoch. If they are read to the end, the blocks are, too."""
        batches = make(blocks)
        last = None if self._last is None else moved(self._last, self._steps.device)
        steps = self._steps.steps(batches, last, self._position)
        yield from islice(steps, self._this_epoch and self._this_epoch - 1)
        # A loop that knows the length asks for no more. So the final batch comes with the end of the epoch.
        final = list(islice(steps, 1))
        while (step := next(steps, None)) is not None:
            yield final.pop()
            final.append(step)
            del step
        # What "drop" has left.
        batches.close()
        for block in blocks:
            del block
        self._steps.end(self._times.received)
        ended = None if self._supply is None or self._supply.at_end_of_data else self._supply.ended_epoch_position
        if final and ended is not None:
            final[-1] = Step(final[-1].batch, ended)
        while final:
            yield final.pop()

    def _claim_for_workers(self, number: int | None, is_counted: bool) -> Iterator[Step]:
        """The steps of an epoch, or of the next one (None). is_counted: DataLoader will call _count_batch()."""
        if self._device is not None:
            raise SupplyError(
                f"to('{self._device}') and workers of a DataLoader: leave num_workers out (transform then runs on the "
                "device), or leave to() out and copy the loader's batches yourself"
            )
        steps = self._alone(self._steps_of(self._claim_blocks(number), self._views.of))
        self._state_is_known = is_counted
        return self._times.seconds.timed(steps)

    def _hand_out(self, step: Step) -> None:
        """The loop has got the step."""
        self._position, self._last, self._state_is_known = step.position, step.last, True

    def _finish_epoch(self) -> None:
        """The loop has got all of the epoch."""
        # A stream may end in the middle of an epoch.
        if self._supply is not None and not self._supply.at_end_of_data:
            self._position, self._last, self._state_is_known = self._supply.ended_epoch_position, None, True


def _known(steps: int | None, epoch: int | None) -> int:
    if steps is None:
        why = "Spark has not counted this rank's elements" if epoch is not None else "call begin() before len()"
        raise TypeError(f"the number of batches is not known: {why}")
    return steps


def _claim_for_workers(dataset_of: weakref.ref[Dataset], number: int | None, is_counted: bool) -> Iterator[Step]:
    dataset = dataset_of()
    if dataset is None:
        raise SupplyError("the data set is gone")
    return dataset._claim_for_workers(number, is_counted)
