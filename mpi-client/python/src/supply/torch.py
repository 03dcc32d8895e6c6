"""What Spark supplies as a data set of PyTorch: supply.torch.SupplyDataset."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from supply._block import Block
from supply._errors import SupplyError
from supply._managed import Managed
from supply._pinned import pin_ring
from supply._steps import Agreement, Batch
from supply._supply import Config, Supply
from supply._supply import open as open_supply

__all__ = ["SupplyDataset"]


class SupplyDataset(Managed, IterableDataset):
    """Batches of tensors; each iteration is one epoch.

        dataset = SupplyDataset(columns=["data", "label"], batch_size=32)
        for epoch in range(10):
            dataset.set_epoch(epoch)
            for batch in DataLoader(dataset, batch_size=None):
                train(batch["data"], batch["label"])
        dataset.close()

    A batch is a dict of tensors by column, their first dimension the batch. Where it lies within one block nothing is copied, and
    Block.torch() says what that means: in-place changes are not possible, and who keeps batches keeps blocks. A batch over several
    blocks is copied.

    config, local_rank, options: as for supply.open(). The pair is opened by the first iteration.
    columns: names of the columns.
    batch_size: elements of a batch, whatever the size of the blocks.
    uneven: how a rank's last batches of an epoch are: "keep": the last one may be smaller, and ranks may have different numbers of
        batches. "drop": all ranks have as many as the one that has fewest full ones. "pad": all ranks have as many as the one that has most,
        all full: elements, and batches, are repeated. With more than one process, drop and pad take an all_reduce a batch.
    process_group: of torch.distributed, for that; None: the default one. Its tensors must be on the CPU, as gloo's.
    pin: registers the ring with CUDA, so that batches can be copied to a device with non_blocking=True.
    copy: every batch is a copy, writable, that holds no block.
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
        pin: bool = False,
        copy: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, must be 1 or more")
        if isinstance(columns, str) or not columns:
            raise ValueError("columns must be a list of one column's name or more")
        if "position" in options:
            raise ValueError("position is set by load_state_dict()")
        self._where = (config, local_rank)
        self._options = options
        self._columns = list(columns)
        self._batch_size = batch_size
        self._agreement = Agreement(uneven, batch_size, process_group)
        self._pin = pin
        self._copy = copy
        self._supply: Supply | None = None
        self._unpin: Callable[[], object] | None = None
        self._position: str | None = None
        self._wanted: int | None = None
        self._begun: int | None = None
        self._ahead: Block | None = None

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is, from 0. What is left of epochs before it is passed over; going back is an error."""
        self._wanted = epoch

    def state_dict(self) -> dict[str, Any]:
        """What has been consumed: every batch that the iteration has handed out. Of this rank alone: each saves its own.

        With uneven="pad" the last batch itself is part of it, copied: what is repeated where nothing is left of the epoch.
        """
        state: dict[str, Any] = {"version": 1, "position": self._position}
        if self._agreement.last is not None:
            state["last"] = {name: tensor.clone() for name, tensor in self._agreement.last[0].items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on behind what state_dict() says, of a run of the same plan: docs/PYTHON.md. Before the first iteration."""
        if self._supply is not None:
            raise SupplyError(
                "load_state_dict() comes too late: the pair is open, and Spark has been told where to begin"
            )
        if state.get("version") != 1:
            raise SupplyError(f"this state is of version {state.get('version')!r}, and only version 1 is known")
        self._position = state["position"]
        if "last" in state:
            self._agreement.last = (state["last"], state["position"])

    def __iter__(self) -> Iterator[Batch]:
        if get_worker_info() is not None:
            raise SupplyError(
                "a SupplyDataset is read in its own process: DataLoader(num_workers=0). Spark prepares the batches meanwhile, and a "
                "worker has no pair of its own"
            )
        return self._epoch()

    def close(self) -> None:
        """Ends the pair: Supply.close()."""
        supply, self._supply, self._ahead = self._supply, None, None
        if supply is not None:
            self._unregister()
            supply.close()

    def abort(self, reason: str) -> None:
        """Ends the pair and tells Spark why: Supply.abort()."""
        supply, self._supply, self._ahead = self._supply, None, None
        if supply is not None:
            self._unregister()
            supply.abort(reason)

    def _unregister(self) -> None:
        if self._unpin is not None:
            self._unpin()
            self._unpin = None

    def _opened(self) -> Supply:
        if self._supply is None:
            supply = open_supply(*self._where, position=self._position, **self._options)
            if self._pin:
                self._register(supply)
            self._supply = supply
        return self._supply

    def _register(self, supply: Supply) -> None:
        try:
            unpin = pin_ring(*supply.mapping)
        except BaseException as error:
            supply.abort(f"{type(error).__name__}: {error}")
            raise
        # Also where the data set is dropped without close(): it comes before the pair's own end, because it is newer.
        self._unpin = weakref.finalize(supply, unpin)

    def _epoch(self) -> Iterator[Batch]:
        supply = self._opened()
        if self._begun is not None:
            # Of an iteration that was broken off: it would hold its block.
            self._agreement.last = None
        first = self._first_block(supply)
        batches = self._batches(supply, first)
        del first
        for batch, position in self._agreement.steps(batches):
            self._position = position
            yield batch
            del batch
        # What "drop" has left.
        for _ in batches:
            pass
        # The end of a stream may come in the middle of an epoch.
        if not supply.at_end_of_data:
            self._position = supply.ended_epoch_position
            self._agreement.last = None

    def _first_block(self, supply: Supply) -> Block | None:
        """The first block of the next epoch, or of the one that is wanted. None: this rank has nothing in it."""
        while True:
            block, self._ahead = self._ahead or supply.next_block(), None
            if supply.at_end_of_data:
                raise SupplyError(
                    f"the data has ended{self._end(supply)}: Spark supplies no more (--epochs; of a stream: query.stop())"
                )
            epoch = supply.ended_epoch if block is None else block.epoch
            # What is left of an iteration that was broken off, and epochs that are not wanted.
            if (self._begun is not None and epoch <= self._begun) or (
                self._wanted is not None and epoch < self._wanted
            ):
                # Else it would be held while the next one is waited for.
                del block
                continue
            if self._wanted is not None and epoch > self._wanted:
                wanted, self._wanted, self._ahead = self._wanted, None, block
                raise SupplyError(f"epoch {wanted} has passed: the next one is {epoch} (set_epoch)")
            self._begun, self._wanted = epoch, None
            return block

    def _end(self, supply: Supply) -> str:
        """Where the end of the data has come."""
        if self._begun is not None and self._begun > supply.ended_epoch:
            return f" in the middle of epoch {self._begun}"
        return f" behind epoch {supply.ended_epoch}" if supply.ended_epoch >= 0 else ""

    def _batches(self, supply: Supply, block: Block | None) -> Iterator[tuple[Batch, str]]:
        """Each batch, and the position behind it."""
        partial: Batch = {}
        filled = 0
        position = ""
        while block is not None:
            columns = {name: block.torch(name, copy=self._copy) for name in self._columns}
            begin, count = 0, len(block)
            while begin < count:
                end = min(begin + self._batch_size - filled, count)
                part = {name: tensor[begin:end] for name, tensor in columns.items()}
                position = block.position_behind(end)
                if filled or end - begin < self._batch_size:
                    partial = partial or self._room(columns)
                    _copy_into(partial, filled, part)
                    filled += end - begin
                    part = partial
                begin = end
                if filled in (0, self._batch_size):
                    partial, filled = {}, 0
                    yield part, position
                del part
            # Else they would hold the block while the next one is waited for.
            del block, columns
            block = supply.next_block()
        if filled:
            yield {name: tensor[:filled] for name, tensor in partial.items()}, position

    def _room(self, columns: Batch) -> Batch:
        return {name: tensor.new_empty((self._batch_size, *tensor.shape[1:])) for name, tensor in columns.items()}


def _copy_into(batch: Batch, begin: int, part: Batch) -> None:
    for name, tensor in part.items():
        if batch[name].shape[1:] != tensor.shape[1:]:
            raise SupplyError(
                f"column '{name}': an element has shape {tuple(tensor.shape[1:])}, those before it in the batch have "
                f"{tuple(batch[name].shape[1:])}: make them equal in Spark, or read block by block (supply.open)"
            )
        batch[name][begin : begin + len(tensor)] = tensor
