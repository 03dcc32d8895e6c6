"""The blocks of one epoch after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from supply.block import Block
from supply.errors import SupplyError
from supply.pair import Supply


class EpochBlocks:
    """Begins epochs of a Supply and skips the rest of earlier ones."""

    def __init__(self, supply: Supply, next_block: Callable[[], Block | None]) -> None:
        """next_block: waits for a block, as Supply.next_block()."""
        self._supply = supply
        self._next_block = next_block
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
            yield block
            del block
            block = self._next_block()

    def place_of_end(self) -> str:
        """Where the data has ended, as a part of a sentence."""
        if self.begun is not None and self.begun > self._supply.ended_epoch:
            return f" in the middle of epoch {self.begun}"
        return f" after epoch {self._supply.ended_epoch}" if self._supply.ended_epoch >= 0 else ""
