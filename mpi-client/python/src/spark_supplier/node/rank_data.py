"""The data set that a rank's function gets, and the rows that it writes for the caller of Supplier.run."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import torch.distributed

from spark_supplier import _core
from spark_supplier.arguments import MASK
from spark_supplier.batches import EVERY_ROW, OwnRows
from spark_supplier.equal_steps import Step
from spark_supplier.errors import SupplyError
from spark_supplier.node.checkpoints import RankCheckpoints
from spark_supplier.node.job import NO_LIMIT_SECONDS, RESULTS, DataSpec
from spark_supplier.node.messages import PLACES, Loop, Measured, Progress, Reported
from spark_supplier.results import ResultWriter
from spark_supplier.torch import Dataset

_PROGRESS_SECONDS = 0.5
# Between two looks for what comes.
_DRAIN_SECONDS = 0.005


class Reports:
    """Keeps numbers until the thread takes them that sends progress. Any thread may use it."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._kept: list[Reported] = []

    def add(self, epoch: int, batch: int, values: dict[str, Any]) -> None:
        """epoch, batch: where the loop is. Raises SupplyError if a value is no number, or its name is taken."""
        if taken := values.keys() & set(PLACES):
            raise SupplyError(f"data.report({min(taken)}=...): the history has that already: take another name")
        numbers = {name: _number(name, value) for name, value in values.items()}
        with self._lock:
            self._kept.append(Reported(epoch, batch, time.monotonic() - self._begun, numbers))

    def take(self) -> list[Reported]:
        """What has come since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
        return kept


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SupplyError(
            f"data.report({name}=...) is {value!r:.100}, which is no number: give a number, or a tensor or an array "
            "with one"
        ) from error


class Opening(Protocol):
    """Where the pairs of a rank are: RunFiles, or the address of a run elsewhere."""

    def opening(self, kind: str) -> dict[str, Any]: ...


class RankData(Dataset):
    """What the function of Supplier.run gets as `data`: a Dataset of this rank's rows, which also saves and reports.

    Attributes
    ----------
    validation : RankData or None
        The data set of Rows(validation=...).
    restarts : int
        How often the call has started its ranks again.
    last_failure : str or None
        Why.
    """

    def __init__(self, spec: DataSpec, files: Opening, checkpoints: RankCheckpoints, is_train: bool = True) -> None:
        options = dict(spec.options)
        own = EVERY_ROW
        if spec.is_global:
            # Neighbours with the same rows are of different functions.
            ranks = int(os.environ["WORLD_SIZE"]) // spec.readers
            own = OwnRows.of(options["batch_size"], checkpoints.rank // spec.readers, ranks)
            options["batch_size"] = own.size
        # Each rank of the node gets all rows, in their one order.
        is_one_order = spec.is_global and is_train
        if is_one_order:
            options.update(reader=int(os.environ["LOCAL_RANK"]), readers=int(os.environ["LOCAL_WORLD_SIZE"]))
        else:
            # Also one of one: an executor's environment may have SUPPLY_SHARE.
            options.update(reader=spec.reader, readers=spec.readers)
        super().__init__(**files.opening(spec.kind), **options, **_exchange(spec))
        if is_one_order:
            self._batches.own = self._views.own = own
        self._steps.needs_a_step, self._steps.is_global = True, spec.is_global
        self._spec = spec
        # Now: the environment of one of several functions counts its own ranks.
        self._is_read = spec.functions > 1 or spec.reader == 0
        self._writes_results = False
        self._loop = Loop(0, 0, False)
        self._checkpoints = checkpoints
        if is_train and checkpoints.attempt.positions is not None:
            self._position = checkpoints.attempt.positions[checkpoints.rank]
        self.restarts = checkpoints.attempt.restarts
        self.last_failure = checkpoints.attempt.last_failure
        # Those of rank 0 reach the driver.
        self._reports = Reports() if checkpoints.rank == 0 else None
        # Of the current epoch, that the loop has got; and the epochs whose statistics the driver has.
        self._batch = 0
        self._measured = 0
        self._last_measured: Measured | None = None
        self.validation = None if spec.validation is None else RankData(spec.validation, files, checkpoints, False)
        if self.validation is not None:
            # What the loop waits for validation data is no time of the program.
            self.validation._share_seconds(self._times.seconds)

    def _open_all(self) -> None:
        for dataset in self._datasets():
            dataset._open()

    def to(self, device: torch.device | str | int) -> RankData:
        """Lets the batches arrive on a CUDA device, also those of the validation data: Dataset.to().

        Parameters
        ----------
        device : torch.device, str or int
            The CUDA device, or "cpu".

        Returns
        -------
        RankData
            This data set.
        """
        for dataset in self._datasets():
            Dataset.to(dataset, device)
        return self

    def _progress(self, rank: int) -> Progress | None:
        """None: no pair is open. Any thread may ask."""
        supply = self._supply
        validated = 0 if self.validation is None else self.validation._received()
        waits_for = next(filter(None, (dataset._waits_for() for dataset in self._datasets())), None)
        if supply is None:
            return Progress(rank, 0, 0, None, validated, waits_for, None) if validated else None
        return Progress(
            rank, supply.ended_epoch + 1, self._received(), supply.epoch_elements, validated, waits_for, self._loop
        )

    def _measure(self, rank: int) -> Measured | None:
        """What the driver does not know yet; None: nothing. One thread at a time may ask."""
        rows = self._times.rows(self._measured)
        measured = Measured(rank, rows, self._reports.take() if self._reports is not None else [])
        # The last one may change.
        self._measured += max(0, len(rows) - 1)
        if measured == self._last_measured or not (rows or measured.reports):
            return None
        self._last_measured = Measured(rank, rows[-1:], [])
        return measured

    def _begin_alone(self) -> bool:
        begins = super()._begin_alone()
        self._batch = 0
        if begins:
            self._loop = Loop(self._number() or 0, 0, False)
        return begins

    def _hand_out(self, step: Step) -> None:
        super()._hand_out(step)
        self._batch += 1
        self._loop = replace(self._loop, batches=self._loop.batches + 1)

    def _finish_epoch(self) -> None:
        super()._finish_epoch()
        self._loop = replace(self._loop, has_all=True)

    def _waits_for(self) -> str | None:
        if self._steps.is_waiting:
            return "other ranks"
        supply = self._supply
        return "Spark" if supply is not None and supply.is_waiting else None

    def _received(self) -> int:
        supply = self._supply
        return 0 if supply is None else supply.statistics.elements

    def report(self, **values: Any) -> None:
        """Reports numbers to the caller of Supplier.run while the function runs.

        The caller's bar shows the last ones of rank 0, and Supplier.statistics.history has them all, with the epoch,
        the batch and the time. What other ranks report is dropped. A tensor of a GPU waits for the GPU.

        Parameters
        ----------
        **values : number, or tensor or array with one
            By name. "epoch", "batch" and "seconds" are taken.

        Raises
        ------
        SupplyError
            A value is no number, or its name is taken.

        Examples
        --------
        >>> from spark_supplier import testing
        >>> data = testing.data({"x": [1.0, 2.0]}, batch_size=1)
        >>> for batch in data:
        ...     data.report(loss=batch["x"].mean())
        >>> [row["loss"] for row in data.reports]
        [1.0, 2.0]
        """
        if self._reports is not None:
            self._reports.add(max(0, self._number() or 0), self._batch, values)

    def save(self, state: Any) -> bool:
        """Saves a state with the position of the data, for a restart and for a later call with resume=True.

        All ranks must call it equally often, after the same step. It waits until the driver has written the state. The
        checkpoint counts when all ranks have saved theirs.

        Parameters
        ----------
        state : object
            What torch.save can pickle, or a function without arguments that makes it, which is called only if a
            checkpoint is due. None: this rank has nothing to save, only its position. Of a module, its state_dict().

        Returns
        -------
        bool
            Whether a checkpoint was due: always, unless Checkpoints(every=...) of the Supplier sets a pause.

        Raises
        ------
        SupplyError
            The Supplier has no checkpoints=, the driver cannot write, or the position is in the middle of an epoch with
            shuffle="all".

        Examples
        --------
        >>> def train(data):
        ...     saved = data.saved
        ...     step = 0 if saved is None else saved["step"]
        ...     for batch in data:
        ...         step += 1
        ...         data.save({"step": step})
        ...     return step
        """
        return self._checkpoints.save(state, self._known_position)

    @property
    def saved(self) -> Any:
        """The state that this rank saved in the checkpoint from which the data begin, or None without a checkpoint.

        A rank that saved none gets rank 0's. Tensors are on the CPU. Each access reads the state from the driver. If
        ranks save shards, and their number may change, see saved_of() and saved_ranks.
        """
        return self._checkpoints.load()

    def saved_of(self, rank: int) -> Any:
        """The state that one of the ranks saved in the checkpoint from which the data begin.

        Parameters
        ----------
        rank : int
            A rank of the call that saved: its number of ranks may have been another one.

        Returns
        -------
        object
            The state, with tensors on the CPU. None: that rank saved none.
        """
        return self._checkpoints.load(rank)

    @property
    def saved_ranks(self) -> list[int]:
        """The ranks that saved a state in the checkpoint from which the data begin, in their order."""
        return list(self._checkpoints.attempt.holders)

    def results(self, name: str = RESULTS, schema: Any = None) -> ResultWriter:
        """Begins this rank's part of the rows that the function writes: of RunResult.rows, or of another result.

        A batch may have all columns of the data. Those that the schema does not name are left out.

        Parameters
        ----------
        name, schema
            As for Dataset.results(). Without them, those of Supplier.run(results=...).

        Returns
        -------
        ResultWriter

        Raises
        ------
        SupplyError
            It was called before: let one `with data.results()` block surround all epochs.

        Examples
        --------
        >>> from spark_supplier import testing
        >>> data = testing.data({"x": [1.0, 2.0]}, batch_size=2, results="x double, twice double")
        >>> with data.results() as out:
        ...     for batch in data:
        ...         out.write({**batch, "twice": 2 * batch["x"]})
        >>> data.written.column("twice").to_pylist()
        [2.0, 4.0]
        """
        if name != RESULTS or self._spec.results is None:
            return super().results(name, schema)
        if self._writes_results:
            raise SupplyError("results() was called before: let one `with data.results()` block surround all epochs")
        self._writes_results = True
        options = self._spec.options
        masks = {column for column, value in (options["nulls"] or {}).items() if value == MASK}
        result: Any = _core.Result if self._is_read else _Unread
        begin = partial(result, self._opened()._pair)
        return ResultWriter(begin, name, schema or self._spec.results, options["columns"], masks)

    def _seal_results(self) -> None:
        """A rank that has written nothing has an empty part."""
        if self._spec.results is None or self._writes_results:
            return
        if self._is_closed:
            raise SupplyError("the function has closed its data, and has written no results: write them before")
        self.results().close()

    @property
    def _is_at_end(self) -> bool:
        """Whether this rank has received all epochs of all its data."""
        return all(
            dataset._supply is not None and dataset._supply.ended_epoch == dataset._spec.epochs - 1
            for dataset in self._datasets()
        )

    def _drain(self, is_over: Callable[[], bool] | None = None) -> None:
        """Receives and drops the rest of the data, so that Spark can supply the other ranks to their end.

        In turns: ranks that share the rings may need the end of one before they read the other. is_over: whether nobody
        needs it any more.
        """
        readers = [dataset._opened() for dataset in self._datasets() if not dataset._is_closed]
        while readers := [reader for reader in readers if not reader.at_end_of_data]:
            if is_over is not None and is_over():
                return
            waits = is_over is None and len(readers) == 1
            ready = [reader for reader in readers if waits or reader.is_ready()]
            for reader in ready:
                reader.next_block()
            if not ready:
                time.sleep(_DRAIN_SECONDS)

    def close(self) -> None:
        for dataset in self._datasets():
            Dataset.close(dataset)

    def abort(self, reason: str) -> None:
        for dataset in self._datasets():
            Dataset.abort(dataset, reason)

    def _datasets(self) -> list[RankData]:
        return [self] if self.validation is None else [self, self.validation]


class Reporter:
    """Sends the driver how far a rank is: each half second from start() on, and when it is asked to."""

    def __init__(self, data: RankData, rank: int, send: Callable[[Any], object]) -> None:
        self._data, self._rank, self._send = data, rank, send
        # Held while measurements are taken and sent, so that they come in their order.
        self._measuring = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def report(self) -> None:
        """The last progress. The bar of a run shorter than the pauses would stay at its beginning."""
        with contextlib.suppress(SupplyError):
            if (progress := self._data._progress(self._rank)) is not None:
                self._send(progress)
        self._measure()

    def stop(self) -> None:
        """Before the thread has noticed it, it may report once more."""
        self._ended.set()

    def join(self) -> None:
        self._thread.join()

    def _measure(self) -> None:
        with self._measuring:
            if (measured := self._data._measure(self._rank)) is not None:
                self._send(measured)

    def _repeat(self) -> None:
        reported = None
        while not self._ended.wait(_PROGRESS_SECONDS):
            # The function may close its pair, and report afterwards, too.
            with contextlib.suppress(SupplyError):
                if (progress := self._data._progress(self._rank)) != reported and progress is not None:
                    self._send(progress)
                    reported = progress
            self._measure()


class _Unread:
    """In place of _core.Result on a rank that is not the first of its group: Spark has its rows from that one."""

    is_open, rows = True, 0

    def __init__(self, *_: Any) -> None:
        pass

    write_arrow = write_stream = seal = abort = abandon_in_child = __init__


def _exchange(spec: DataSpec) -> dict[str, Any]:
    """The options of Dataset for an exchange over MPI or over torch.distributed.

    Ranks with the same number in their groups exchange. So each rank of a group has the same neighbours, and gets the
    same rows.
    """
    if spec.exchange_over is None:
        return {}
    ranks_of = _mpi_ranks if spec.exchange_over == "mpi" else _torch_ranks
    # The process group of one of several functions has only the ranks that exchange.
    place = (0, 1) if spec.functions > 1 else (spec.reader, spec.readers)
    return {"exchange": "supplied", "comm": ranks_of(*place)}


def _torch_ranks(reader: int, readers: int) -> Any:
    if readers == 1:
        return torch.distributed.group.WORLD
    ranks = range(torch.distributed.get_world_size())
    limit = timedelta(seconds=NO_LIMIT_SECONDS)
    # All ranks make each of them.
    made = [torch.distributed.new_group(ranks[each::readers], limit, "gloo") for each in range(readers)]
    return made[reader]


# Once in a process: a communicator lives as long as MPI.
@functools.cache
def _mpi_ranks(reader: int, readers: int) -> Any:
    from mpi4py import MPI

    return MPI.COMM_WORLD if readers == 1 else MPI.COMM_WORLD.Split(reader, MPI.COMM_WORLD.rank)
