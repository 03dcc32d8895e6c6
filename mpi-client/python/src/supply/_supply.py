"""A rank's side of a pair: opening, receiving, closing."""

from __future__ import annotations

import os
import pathlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Union

from supply import _core
from supply._block import Block
from supply._errors import AllHeldError
from supply._managed import Managed

if TYPE_CHECKING:
    from mpi4py import MPI

Path = Union[str, "os.PathLike[str]"]
Config = Union[Path, tuple[Path, Path], None]

# In a warning against hoarding, so many of the blocks are told.
_HOARD_SHOWN = 8


class Statistics(NamedTuple):
    """What a Supply has seen so far."""

    elements: int
    blocks: int
    bytes: int
    seconds_waited: float


class Supply(Managed):
    """A rank's end of its pair: iterate over it for the blocks of all epochs, or epoch by epoch. Made by open() and from_comm().

    One thread at a time may ask for the next block. Waiting lets other Python threads run, ends with Ctrl-C (but that of close() behind
    the end of the data), and ends by itself after the time limit. Belongs to the process that opened it: a forked child can not use it.
    """

    def __init__(self, pair: _core.Pair) -> None:
        self._pair = pair
        self._ended = ""
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        self._views: weakref.WeakSet[_core.Column] = weakref.WeakSet()
        self._ended_epoch = -1
        self._ended_epoch_position: str | None = None
        # Also where Python ends while this is still referenced: a pair that is left would look like a rank that was killed.
        weakref.finalize(self, pair.close)

    def __iter__(self) -> Iterator[Block]:
        """The blocks of all epochs, to the end of the data."""
        while not self.at_end_of_data:
            yield from self.epoch()

    def epoch(self) -> Iterator[Block]:
        """The blocks that are left of the current epoch. After the last epoch there are none."""
        while (block := self.next_block()) is not None:
            yield block
            # Else this generator would hold the block while the next one is waited for.
            del block

    def next_block(self) -> Block | None:
        """Waits for the next block; None at the end of an epoch, and at the end of the data, which at_end_of_data tells.

        Raises AllHeldError where neither a block nor an end can come because all of the ring are held; SupplyTimeoutError, SparkError,
        ContractError.
        """
        if self._ended == "end of data":
            return None
        try:
            self._ended, came = self._pair.next()
        except AllHeldError as error:
            error.args = (f"{error}{self._hoard()}",)
            raise
        if self._ended == "end of epoch":
            self._ended_epoch, self._ended_epoch_position = came
        if self._ended != "block":
            return None
        block = Block(came, self._views.add)
        self._blocks.add(block)
        return block

    @property
    def at_end_of_data(self) -> bool:
        """Whether every epoch has ended."""
        return self._ended == "end of data"

    @property
    def position(self) -> str:
        """Where this rank stands, for open(position=...) of a later run: behind the last block that is released, with all before it.

        Behind a part of a block: Block.position_behind().
        """
        return self._pair.position()

    @property
    def ended_epoch(self) -> int:
        """The last epoch that has ended, from 0; -1 before the first end."""
        return self._ended_epoch

    @property
    def ended_epoch_position(self) -> str | None:
        """The position behind ended_epoch, whatever of it is still held; None before the first end."""
        return self._ended_epoch_position

    @property
    def statistics(self) -> Statistics:
        """Elements, blocks and bytes that were received, and the time spent in waiting, in seconds."""
        return Statistics(*self._pair.statistics)

    @property
    def mapping(self) -> tuple[int, int]:
        """Address and bytes of the mapped file in this process, for registering it with a device. All behind its first 4096 bytes is
        read-only."""
        return self._pair.mapping

    def close(self) -> None:
        """Ends the pair and removes its files. Before the end of the data Spark is told that this rank stopped early, and its run fails;
        an end of data that follows the end of an epoch at once is awaited, and needs a slot: AllHeldError where all are held. Arrays that
        were taken of blocks stay readable.
        """
        try:
            if self._pair.is_open and self._ended == "end of epoch":
                self.next_block()
        finally:
            self._pair.close()

    def abort(self, reason: str) -> None:
        """Ends the pair, without waiting, and tells Spark why: its run fails with this text. Behind the end of the data it does not."""
        self._pair.abort(reason)

    def _hoard(self) -> str:
        """Who holds the ring."""
        held: dict[int, list[str]] = {}
        for block in list(self._blocks):
            held.setdefault(block.sequence, []).append("the block itself")
        for view in list(self._views):
            held.setdefault(view.sequence, []).append(f"a view of '{view.name}'")
        parts = [
            f"block {sequence}: {', '.join(sorted(set(what)))}"
            for sequence, what in sorted(held.items())[:_HOARD_SHOWN]
        ]
        if len(held) > _HOARD_SHOWN:
            parts.append(f"and {len(held) - _HOARD_SHOWN} blocks more")
        parts.append("what is not listed here: Arrow arrays")
        return (
            f". Still referenced in Python: {'; '.join(parts)}. Drop them before the next block, or keep copies: copy=True. The end of an "
            "epoch and the end of the data take a block of the ring each, too"
        )


def open(
    config: Config = None,
    local_rank: int | None = None,
    *,
    rank: int | None = None,
    timeout: float | None = None,
    ring: int | None = None,
    block: int | None = None,
    group: str | None = None,
    position: str | None = None,
) -> Supply:
    """Opens this rank's end of its pair, without waiting for Spark.

    config: the folder with mapped-files.conf and named-pipes.conf; or the paths of both files; None: SUPPLY_MAPPED_FILES and
        SUPPLY_NAMED_PIPES of the environment.
    local_rank: the rank's number on its node, from 0: which line of the files; None: what the launcher's environment says.
    rank: its number in the job, which Spark's task checks; None: what the launcher's environment says.
    timeout: limit of each wait in seconds; None: SUPPLY_TIMEOUT, or 120.
    ring, block: bytes of the ring and of a block; None: as the config line says, or four blocks of 2 MiB.
    group: group whose members may feed this rank; None: as the config line says (docs/SECURITY.md).
    position: goes on behind this position of an earlier run of the same plan: partitions, ranks, seed, shuffle, uneven; None: from
        the beginning.

    Raises ConfigError, InUseError, NoSpaceError, SupplyError.
    """
    mapped_files, named_pipes = _config_files(config)
    return Supply(
        _core.Pair(
            mapped_files=mapped_files,
            named_pipes=named_pipes,
            local_rank=-1 if local_rank is None else local_rank,
            rank=-1 if rank is None else rank,
            timeout=timeout or 0,
            ring_bytes=ring or 0,
            block_bytes=block or 0,
            group=group or "",
            position=position or "",
        )
    )


def from_comm(
    comm: MPI.Comm,
    config: Config = None,
    *,
    timeout: float | None = None,
    ring: int | None = None,
    block: int | None = None,
    group: str | None = None,
    position: str | None = None,
) -> Supply:
    """As open(), with both ranks from an mpi4py communicator. Collective; the communicator spans the job as MPI.COMM_WORLD does."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    local_rank = node.rank
    node.Free()
    return open(
        config, local_rank, rank=comm.rank, timeout=timeout, ring=ring, block=block, group=group, position=position
    )


def _config_files(config: Config) -> tuple[str, str]:
    if config is None:
        return "", ""
    if isinstance(config, (str, os.PathLike)):
        folder = pathlib.Path(config)
        config = (folder / "mapped-files.conf", folder / "named-pipes.conf")
    mapped_files, named_pipes = config
    return os.fspath(mapped_files), os.fspath(named_pipes)
