"""A rank's side of a pair: receive, close."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from spark_supplier import _core
from spark_supplier.block import Block, known_position, require_arrow_views
from spark_supplier.closing import Closing, in_utf8, leave_to_parent
from spark_supplier.errors import RingFullError, SupplyError
from spark_supplier.results import ResultWriter

# RingFullError lists at most this number of blocks.
_LISTED_BLOCKS = 8


class ExchangeStatistics(NamedTuple):
    """Totals of an exchange, as this rank sees them.

    Attributes
    ----------
    ranks : int
        All ranks, this one included.
    copying_ranks : int
        Other ranks into whose memory this one copies its rows. The rest get messages.
    forwarded_ranks : int
        Ranks of other nodes that get messages through one rank of their node. sent_bytes counts them.
    window_bytes : int
        Size of a window.
    windows, rounds, collectives : int
        Windows of this rank, the rounds in which they moved, and collective operations. There are more rounds than
        windows if memory for one round is not enough, or if an epoch ends unevenly.
    copied_bytes, sent_bytes : int
        Bytes of rows that were copied, and that were sent in messages.
    seconds_gathering, seconds_agreeing, seconds_copying, seconds_sending : float
        Time until Spark had supplied a window; with all ranks, to agree on it; to copy and to pack messages, until
        neighbours had copied, too; until all messages had come. It may pass while the program computes.
    """

    ranks: int
    copying_ranks: int
    forwarded_ranks: int
    window_bytes: int
    windows: int
    rounds: int
    collectives: int
    copied_bytes: int
    sent_bytes: int
    seconds_gathering: float
    seconds_agreeing: float
    seconds_copying: float
    seconds_sending: float


class Statistics(NamedTuple):
    """Totals of a Reader.

    Attributes
    ----------
    elements, blocks, bytes : int
        Rows, blocks and bytes that this rank has received.
    seconds_waited : float
        Time without a block to hand out.
    exchange : ExchangeStatistics or None
        Of the exchange, if there is one.
    """

    elements: int
    blocks: int
    bytes: int
    seconds_waited: float
    exchange: ExchangeStatistics | None


class Reader(Closing):
    """A rank's side of its buffer, made by open() and from_comm(). Iterate over it for the blocks of all epochs.

    Only one thread at a time may ask for the next block. While a call waits, other Python threads run, and Ctrl-C
    raises KeyboardInterrupt. Every wait ends after the timeout. The process that opened a Reader must read it: a forked
    child cannot.

    Attributes
    ----------
    is_waiting : bool
        Whether a call waits for a block. Any thread may ask.

    Examples
    --------
    ::

        with spark_supplier.ranks.open() as reader:
            while not reader.at_end_of_data:
                for block in reader.epoch():
                    train(block.torch("features", copy=True))
    """

    def __init__(self, pair: _core.Pair) -> None:
        self._pair = pair
        self._last = ""
        # What is_ready() has received.
        self._next: tuple[str, Any] | None = None
        # Whether a call waits for a block. Any thread may ask.
        self.is_waiting = False
        self._ended_epoch = -1
        self._ended_epoch_position: str | None = None
        leave_to_parent(pair)
        # Also at Python's exit: to Spark, a pair that is left open looks like a rank that was killed.
        weakref.finalize(self, pair.finish)

    def __repr__(self) -> str:
        ended = f", epoch {self._ended_epoch} has ended" if self._ended_epoch >= 0 else ""
        return f"<spark_supplier.ranks.Reader {'closed' if self.closed else 'open'}{ended}>"

    def __iter__(self) -> Iterator[Block]:
        """The blocks of all epochs, to the end of the data."""
        while self.closed or not self.at_end_of_data:
            yield from self.epoch()

    def epoch(self) -> Iterator[Block]:
        """The rest of the current epoch's blocks. After the last epoch there are none."""
        while (block := self.next_block()) is not None:
            yield block
            # Otherwise this generator would hold the block during the next wait.
            del block

    def next_block(self) -> Block | None:
        """Waits for the next block.

        Returns
        -------
        Block or None
            None: at the end of an epoch, and at the end of the data (see at_end_of_data).

        Raises
        ------
        RingFullError
            The program holds all blocks of the buffer.
        SupplyTimeoutError
            The timeout has passed.
        SparkError
            Spark has failed.
        ContractError
            Spark's side has written what the contract forbids.
        """
        return self._receive(once=False)

    def _receive(self, once: bool) -> Block | None:
        """once: None also when the timeout has passed since this call, even if a task has left meanwhile."""
        if self.at_end_of_data and not self.closed:
            return None
        self.is_waiting = True
        try:
            (self._last, received), self._next = self._next or self._pair.next(once), None
        except RingFullError as error:
            error.args = (f"{error}{self._references()}",)
            raise
        finally:
            self.is_waiting = False
        if self._last == "end of epoch":
            self._ended_epoch, self._ended_epoch_position = received
        if self._last != "block":
            return None
        return Block(received)

    def is_ready(self) -> bool:
        """Whether next_block() returns at once.

        It receives what is there: the block has its place in the buffer, and counts in the statistics. It raises as
        next_block() does, except that no timeout passes.

        Returns
        -------
        bool
        """
        if self._next is None and (self.closed or not self.at_end_of_data):
            received = self._pair.next_now()
            self._next = None if received[0] == "nothing" else received
        return self._next is not None or self.at_end_of_data

    @property
    def at_end_of_data(self) -> bool:
        """Whether this rank has received everything."""
        return self._last == "end of data"

    @property
    def position(self) -> str:
        """The rank's position, for open(position=...) of a later run.

        It is after the last block that is released together with all blocks before it.

        For a position inside a block see Block.position_after().
        """
        return known_position(self._pair.position())

    @property
    def ended_epoch(self) -> int:
        """The last epoch that has ended, from 0; -1 before the first end."""
        return self._ended_epoch

    @property
    def ended_epoch_position(self) -> str | None:
        """The position after ended_epoch, even if you still hold blocks of it. None before the first end."""
        return self._ended_epoch_position

    @property
    def epoch_elements(self) -> int | None:
        """The rows that this rank gets in each whole epoch. None: not known, or not yet.

        Known as soon as a task has attached, if the data is an LMDB or Spark counted it (uneven). Otherwise known from
        the end of the first whole epoch. With resume-positions, not known in the first epoch. Never known of a stream.
        """
        counts = self._pair.counts
        return counts[0] if counts else None

    @property
    def epoch_steps(self) -> int | None:
        """The blocks that this rank gets in each whole epoch, the same number on all ranks. None: not known.

        Known from the start with uneven drop or pad together with block_elements.
        """
        counts = self._pair.counts
        return counts[1] or None if counts else None

    @property
    def statistics(self) -> Statistics:
        """Received elements, blocks and bytes, the seconds spent waiting, and what an exchange did."""
        elements, blocks, nbytes, seconds, exchange = self._pair.statistics
        return Statistics(elements, blocks, nbytes, seconds, exchange and ExchangeStatistics(*exchange))

    @property
    def mapping(self) -> tuple[int, int]:
        """Address and bytes of the mapped file in this process. Everything after its first 4096 bytes is read-only."""
        return self._pair.mapping

    def results(self, name: str = "results", schema: Any = None) -> ResultWriter:
        """Begins this rank's part of a result, which Spark reads as a DataFrame.

        Every rank must seal its part, also one without rows. A result may outlive the Reader.

        Parameters
        ----------
        name : str, default "results"
            1 to 64 of the characters A-Z a-z 0-9 _ -. Each result of a run has its own.
        schema : pyarrow.Schema, object with __arrow_c_schema__, or str, optional
            As a text: "id long not null, vector array<float>". Default: that of the first batch; but then a rank
            without rows is an error.

        Returns
        -------
        ResultWriter

        Examples
        --------
        ::

            with reader.results("predictions") as out:
                out.write({"id": ids, "score": scores})
        """
        if self.closed:
            raise SupplyError("this supply is closed")
        return ResultWriter(partial(_core.Result, self._pair), name, schema)

    @property
    def closed(self) -> bool:
        """Whether the pair is closed."""
        return not self._pair.is_open

    def __arrow_c_schema__(self) -> Any:
        """The schema of the blocks, for pyarrow.schema(supply). Raises SupplyError before a task has attached."""
        require_arrow_views(self._pair.formats())
        return self._pair.arrow_schema()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rest of the current epoch as a stream of record batches, one for each block. Needs pyarrow.

        A consumer that keeps all batches, for example pyarrow.table(), needs a ring as large as the epoch.
        """
        import pyarrow

        blocks = self.epoch()
        first = next(blocks, None)

        def batches() -> Iterator[Any]:
            nonlocal first
            if first is not None:
                yield pyarrow.record_batch(first)
            first = None
            yield from map(pyarrow.record_batch, blocks)

        return pyarrow.RecordBatchReader.from_batches(pyarrow.schema(self), batches()).__arrow_c_stream__()

    def close(self) -> None:
        """Closes the buffer and removes its files. Arrays that you took of blocks stay readable (see Block).

        Before the end of the data Spark is notified that this rank stopped early, and its run fails. If the last epoch
        has just ended, close() waits for the end of the data, which needs a place in the buffer: RingFullError if you
        hold all blocks. Then it waits until Spark knows that this rank has everything. It waits at most the timeout. If
        Ctrl-C ends that second wait, the buffer stays open: call close() again, or abort().
        """
        try:
            if self._last == "end of epoch" and not self.closed:
                self._receive(once=True)
        finally:
            self._next = None
            self._pair.close()

    def abort(self, reason: str) -> None:
        """Closes the buffer without waiting and tells Spark why. After the end of the data Spark is not notified.

        Parameters
        ----------
        reason : str
            The text with which Spark's run fails.
        """
        self._next = None
        self._pair.abort(in_utf8(reason))

    def _references(self) -> str:
        """The rest of the text of an RingFullError: the references that hold the ring."""
        held: dict[int, list[str]] = {}
        for sequence, name in self._pair.references():
            held.setdefault(sequence, []).append("the block itself" if name is None else f"a view of '{name}'")
        parts = [
            f"block {sequence}: {', '.join(sorted(set(references)))}"
            for sequence, references in sorted(held.items())[:_LISTED_BLOCKS]
        ]
        if len(held) > _LISTED_BLOCKS:
            parts.append(f"and {len(held) - _LISTED_BLOCKS} more blocks")
        parts.append("Arrow arrays are not listed here")
        return (
            f". Still referenced in Python: {'; '.join(parts)}. Drop them before the next block, or keep copies: "
            "copy=True (of a Dataset: leave zero_copy out). The end of an epoch and the end of the data need a "
            "slot of the ring each, too"
        )
