"""SupplyDataset: what Spark supplies, as a PyTorch data set."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from supply.block import Block
from supply.closing import Closing
from supply.equal_steps import Batch, EqualSteps
from supply.errors import AllHeldError, SupplyError
from supply.pair import Config, Supply
from supply.pair import open as open_supply
from supply.pinned import PendingCopies, Stream, pin_ring

__all__ = ["SupplyDataset"]


class SupplyDataset(Closing, IterableDataset):
    """Batches of tensors. Each iteration is one epoch.

        dataset = SupplyDataset(columns=["data", "label"], batch_size=32)
        for epoch in range(10):
            dataset.set_epoch(epoch)
            for batch in DataLoader(dataset, batch_size=None):
                train(batch["data"], batch["label"])
        dataset.close()

    A batch is a dict of tensors by column; their first dimension is the batch. A batch inside one block is not copied:
    do not change it in place (see Block.torch()), and it occupies the block's slot while you keep it. A batch over
    several blocks is a copy.

    config, local_rank, options: as for supply.open(). The first iteration opens the pair.
    columns: names of the columns.
    batch_size: elements of a batch, for blocks of any size.
    uneven: the end of an epoch if ranks have different numbers of elements. "keep": the last batch may be smaller, and
        ranks may have different numbers of batches. "drop": all ranks have as many batches as the rank with the fewest
        full ones. "pad": all ranks have as many batches as the rank with the most, and all are full: elements and
        batches are repeated. With several processes, drop and pad need one all_reduce for each batch.
    process_group: the torch.distributed group for that all_reduce, with tensors on the CPU (gloo). None: the default
        group.
    pin: True registers the ring with CUDA, for copies with non_blocking=True. A batch then keeps its slot of the ring
        until the current stream has done everything that you queued before you asked for the next batch. If you copy
        on another torch.cuda.Stream, pass that stream instead of True.
    copy: every batch is a writable copy that holds no block.
    """

    def __init__(
        self,
        config: Config = None,
        local_rank: int | None = None,
        *,
        columns: Sequence[str],
        batch_size: int,
        uneven: str = "keep",
        process_group: torch.distributed.ProcessGroup | None = None,
        pin: bool | Stream = False,
        copy: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, must be 1 or more")
        if isinstance(columns, str) or not columns:
            raise ValueError("columns must be a list of one or more column names")
        if "position" in options:
            raise ValueError("load_state_dict() sets the position: leave position out")
        self._pair = (config, local_rank)
        self._options = options
        self._columns = list(columns)
        self._batch_size = batch_size
        self._steps = EqualSteps(uneven, batch_size, process_group)
        self._copies = PendingCopies(None if pin is True else pin) if pin else None
        self._copy = copy
        self._supply: Supply | None = None
        self._unpin: Callable[[], object] | None = None
        self._position: str | None = None
        self._wanted_epoch: int | None = None
        self._begun_epoch: int | None = None
        self._ahead: Block | None = None

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch, from 0. The rest of earlier epochs is skipped; going back is an error."""
        self._wanted_epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """What this rank has consumed: every batch that the iteration has handed out. Each rank saves its own state.

        With uneven="pad" it has a copy of the last batch, which a rank repeats if nothing is left of its epoch.
        """
        state: dict[str, Any] = {"version": 1, "position": self._position}
        if self._steps.last is not None:
            state["last"] = {name: tensor.clone() for name, tensor in self._steps.last[0].items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes after a state of a run of the same plan (docs/PYTHON.md). Call it before the first iteration."""
        if self._supply is not None:
            raise SupplyError("load_state_dict() is too late: the pair is open, and Spark knows where to begin")
        if state.get("version") != 1:
            raise SupplyError(f"this state has version {state.get('version')!r}, but only version 1 is known")
        self._position = state["position"]
        if "last" in state:
            self._steps.last = (state["last"], state["position"])

    def __iter__(self) -> Iterator[Batch]:
        if get_worker_info() is not None:
            raise SupplyError(
                "read a SupplyDataset in its own process: DataLoader(num_workers=0). A worker has no pair, and Spark "
                "already prepares the next batches"
            )
        return self._epoch()

    def close(self) -> None:
        """Closes the pair: Supply.close()."""
        self._end(Supply.close)

    def abort(self, reason: str) -> None:
        """Closes the pair and tells Spark why: Supply.abort()."""
        self._end(lambda supply: supply.abort(reason))

    def _end(self, end: Callable[[Supply], None]) -> None:
        supply, self._ahead = self._supply, None
        if supply is None:
            return
        if self._unpin is not None:
            self._unpin()
            self._unpin = None
        try:
            end(supply)
        finally:
            # An interrupted close() leaves it open.
            if supply.closed:
                self._supply = None

    def _opened(self) -> Supply:
        if self._supply is None:
            supply = open_supply(*self._pair, position=self._position, **self._options)
            if self._copies is not None:
                self._pin(supply, self._copies)
            self._supply = supply
        return self._supply

    def _pin(self, supply: Supply, copies: PendingCopies) -> None:
        try:
            unpin = pin_ring(*supply.mapping)
        except BaseException as error:
            supply.abort(f"{type(error).__name__}: {error}")
            raise

        def finish() -> None:
            copies.wait_for_all()
            unpin()

        # Without a close(), too. It runs before the pair's own finalizer, because it is newer.
        self._unpin = weakref.finalize(supply, finish)

    def _epoch(self) -> Iterator[Batch]:
        supply = self._opened()
        if self._begun_epoch is not None:
            # An iteration that was broken off has left it. It would hold its block.
            self._steps.last = None
        first = self._first_block(supply)
        batches = self._batches(supply, first)
        del first
        for batch, position in self._steps.steps(batches):
            self._position = position
            try:
                yield batch
            finally:
                if self._copies is not None:
                    self._copies.keep(batch)
            del batch
        # The batches that "drop" has left.
        for _ in batches:
            pass
        # A stream may end in the middle of an epoch.
        if not supply.at_end_of_data:
            self._position = supply.ended_epoch_position
            self._steps.last = None

    def _next_block(self, supply: Supply) -> Block | None:
        while True:
            try:
                return supply.next_block()
            except AllHeldError:
                if self._copies is None or not self._copies.wait_for_oldest():
                    raise

    def _first_block(self, supply: Supply) -> Block | None:
        """The first block of the next epoch, or of the epoch of set_epoch(). None: this rank has no element in it."""
        while True:
            block, self._ahead = self._ahead or self._next_block(supply), None
            if supply.at_end_of_data:
                raise SupplyError(
                    f"the data has ended{self._place_of_end(supply)}: Spark supplies no more (--epochs; of a stream: "
                    "query.stop())"
                )
            epoch = supply.ended_epoch if block is None else block.epoch
            # The rest of an iteration that was broken off, and epochs that are not wanted.
            if (self._begun_epoch is not None and epoch <= self._begun_epoch) or (
                self._wanted_epoch is not None and epoch < self._wanted_epoch
            ):
                # Otherwise it would be held during the next wait.
                del block
                continue
            if self._wanted_epoch is not None and epoch > self._wanted_epoch:
                wanted, self._wanted_epoch, self._ahead = self._wanted_epoch, None, block
                raise SupplyError(f"epoch {wanted} has passed: the next one is {epoch} (set_epoch)")
            self._begun_epoch, self._wanted_epoch = epoch, None
            return block

    def _place_of_end(self, supply: Supply) -> str:
        if self._begun_epoch is not None and self._begun_epoch > supply.ended_epoch:
            return f" in the middle of epoch {self._begun_epoch}"
        return f" after epoch {supply.ended_epoch}" if supply.ended_epoch >= 0 else ""

    def _batches(self, supply: Supply, block: Block | None) -> Iterator[tuple[Batch, str]]:
        """Each batch, and the position after it."""
        partial: Batch = {}
        filled = 0
        position = ""
        while block is not None:
            columns = {name: block.torch(name, copy=self._copy) for name in self._columns}
            begin, count = 0, len(block)
            while begin < count:
                end = min(begin + self._batch_size - filled, count)
                part = {name: tensor[begin:end] for name, tensor in columns.items()}
                position = block.position_after(end)
                if filled or end - begin < self._batch_size:
                    partial = partial or self._empty_batch(columns)
                    _copy_into(partial, filled, part)
                    filled += end - begin
                    part = partial
                begin = end
                if filled in (0, self._batch_size):
                    partial, filled = {}, 0
                    yield part, position
                del part
            # Otherwise they would hold the block during the next wait.
            del block, columns
            block = self._next_block(supply)
        if filled:
            yield {name: tensor[:filled] for name, tensor in partial.items()}, position

    def _empty_batch(self, columns: Batch) -> Batch:
        return {name: tensor.new_empty((self._batch_size, *tensor.shape[1:])) for name, tensor in columns.items()}


def _copy_into(batch: Batch, begin: int, part: Batch) -> None:
    for name, tensor in part.items():
        if batch[name].shape[1:] != tensor.shape[1:]:
            raise SupplyError(
                f"column '{name}': an element has shape {tuple(tensor.shape[1:])}, earlier ones of the batch have "
                f"{tuple(batch[name].shape[1:])}: make them equal in Spark, or read block by block (supply.open)"
            )
        batch[name][begin : begin + len(tensor)] = tensor
