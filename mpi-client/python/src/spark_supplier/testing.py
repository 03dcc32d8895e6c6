"""For unit tests of the functions that ranks run: what a function gets as `data`, without Spark and processes."""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import pathlib
import struct
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import torch

from spark_supplier import _core
from spark_supplier.arguments import column_names, optional_size, shown, whole_number
from spark_supplier.batch import Batch, length_of
from spark_supplier.block import Block
from spark_supplier.errors import ConfigError, SupplyError
from spark_supplier.jagged import Jagged
from spark_supplier.node.checkpoints import RankCheckpoints, dumped, loaded
from spark_supplier.node.job import RESULTS, DataSpec
from spark_supplier.node.messages import Attempt
from spark_supplier.node.rank_data import RankData
from spark_supplier.node.run_files import RunFiles
from spark_supplier.opening import create_results, passed_options
from spark_supplier.pair import Reader

if TYPE_CHECKING:
    from spark_supplier.torch import Ragged

__all__ = ["LocalData", "data"]

# In a file system in memory, if there is one that can be written.
_MEMORY = "/dev/shm"
# Nothing waits for another process.
_SECONDS = 10
_WRITTEN = "written"


def data(
    rows: Any,
    *,
    columns: Sequence[str] | None = None,
    batch_size: int = 32,
    epochs: int = 1,
    shuffle: bool = False,
    seed: int = 0,
    ranks: int = 1,
    rank: int = 0,
    validation: Any = None,
    transform: Callable[[Batch], Any] | None = None,
    collate_fn: Callable[[list[dict[str, Any]]], Any] | None = None,
    dtypes: Mapping[str, torch.dtype] | None = None,
    ragged: Mapping[str, Ragged] | Ragged | None = None,
    nulls: Mapping[str, Any] | None = None,
    zero_copy: bool = False,
    results: str | None = None,
    resume: LocalData | None = None,
    block: int | str | None = None,
) -> LocalData:
    """Makes what a function of Supplier.run gets as `data`, in this process: for unit tests of the function.

    The rows go through a real buffer in shared memory, so batches have the types, shapes and errors of a call.

    Parameters
    ----------
    rows : dict of str to array, tensor or list; pandas.DataFrame; or a table of Arrow
        The rows. An array of shape (rows, N) is a list of N numbers for each row. Lists may hold None, text, bytes,
        and lists of any length; a dict in place of an array is a struct.
    columns : sequence of str, optional
        The columns that the function gets. Default: all.
    batch_size : int, default 32
        Rows of a batch.
    epochs : int, default 1
        How often the rows come.
    shuffle : bool, default False
        Whether each epoch has an order of its own. Without it, rows keep their order.
    seed : int, default 0
        Of that order.
    ranks, rank : int, default 1 and 0
        The number of ranks that share the rows, and the one whose share this is: a run of rows. `ranks` changes nothing
        else: torch.distributed is not initialized.
    validation : same as rows, optional
        The rows of data.validation, which come once in each epoch. Each rank gets its share.
    transform, collate_fn, dtypes, ragged, nulls, zero_copy : optional
        As for spark_supplier.torch.Dataset.
    results : str, optional
        The schema of the rows that the function writes, as "id long, score float". Default: that of the first batch
        that it writes.
    resume : LocalData, optional
        Begins after the last data.save() of this earlier data set of the same rows, as ranks do after a restart.
    block : int or str, optional
        Size of a block: bytes, or a text as "8MiB". No row can be larger. Default: 2 MiB.

    Returns
    -------
    LocalData

    Raises
    ------
    ConfigError
        An option is wrong.
    SupplyError
        There are no rows.

    Examples
    --------
    >>> import numpy
    >>> from spark_supplier import testing
    >>> def total(data):
    ...     found = sum(batch["x"].sum().item() for epoch in data.epochs() for batch in epoch)
    ...     data.report(total=found)
    ...     return found
    >>> data = testing.data({"x": numpy.arange(100)}, batch_size=32, epochs=2)
    >>> total(data)
    9900
    >>> data.reports[0]["total"]
    9900.0
    """
    for name, number, least in (("epochs", epochs, 1), ("seed", seed, 0), ("ranks", ranks, 1), ("rank", rank, 0)):
        whole_number(name, number, least)
    if rank >= ranks:
        raise ConfigError(f"rank is {rank}: it must be below ranks, {ranks}")
    given = _Rows.of(rows, "rows")
    options = {
        "columns": given.names if columns is None else column_names(columns), "batch_size": batch_size,
        "uneven": "keep", "timeout": _SECONDS, "transform": transform, "collate_fn": collate_fn, "dtypes": dtypes,
        "ragged": ragged, "nulls": nulls, "zero_copy": zero_copy,
    }  # fmt: skip
    order = _Order(epochs, seed if shuffle else None, ranks, rank)
    attempt = Attempt(next=1)
    checkpoints = _Kept(attempt, rank)
    if resume is not None:
        checkpoints.resume_from(resume._kept)
    folder = tempfile.TemporaryDirectory(prefix="supply-testing-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    files = RunFiles(folder.name, "run", ("train", "validation", _WRITTEN), 1, None, optional_size("block", block))
    files.write_config()
    made = LocalData(DataSpec("train", options, epochs, results=results), files, checkpoints, given, order)
    if validation is not None:
        spec = DataSpec("validation", options, epochs)
        other = _Rows.of(validation, "validation")
        made.validation = LocalData(spec, files, checkpoints, other, order._replace(seed=None), is_train=False)
        made.validation._share_seconds(made._times.seconds)
    weakref.finalize(made, folder.cleanup)
    return made


class LocalData(RankData):
    """What data() makes: a RankData whose rows come from this process.

    It has all that a function's `data` has, and what the function did with it.

    Attributes
    ----------
    restarts : int
        0, or what you set: how often the call has started its ranks again.
    last_failure : str or None
        None, or what you set: why.
    """

    def __init__(
        self, spec: DataSpec, files: RunFiles, checkpoints: _Kept, rows: _Rows, order: _Order, is_train: bool = True
    ) -> None:
        super().__init__(spec, files, checkpoints, is_train)
        self._files = files
        self._kept = checkpoints
        self._rows = rows
        self._order = order
        self._history: list[dict[str, Any]] = []

    @property
    def saves(self) -> list[Any]:
        """The states that the function saved by data.save(), as they come back: pickled once, on the CPU."""
        return [loaded(io.BytesIO(state)) for _, state in self._kept.saves]

    @property
    def reports(self) -> list[dict[str, Any]]:
        """What data.report() got, each as a dict of its numbers with epoch, batch and seconds."""
        if self._reports is not None:
            self._history += (report.row() for report in self._reports.take())
        return self._history

    @property
    def written(self) -> Any:
        """The rows that the function has written by data.results(), when its `with` block has ended: a pyarrow.Table.

        None: there are none. Needs pyarrow.
        """
        import pyarrow

        found = list(self._files.results_folder.glob(f"train-0.mapped.{RESULTS}.result"))
        if not found:
            return None
        task = _Task(self._files, _WRITTEN, _Plan(1, 0, 0), found[0], lambda epoch, first: found[0])
        with task.open(None) as reader:
            batches = [_copied(block) for block in reader.epoch()]
            return pyarrow.Table.from_batches(batches, pyarrow.schema(reader))

    def _open(self) -> Reader:
        self._require_open()
        if self._supply is None:
            # No reference to this data set: it ends when the program drops it.
            kind, order, count = self._spec.kind, self._order, self._rows.count
            writer = _Writer(self._files, kind, self._rows)
            fingerprint = zlib.crc32(repr((order, count)).encode())
            plan = _Plan(order.epochs, len(order.share(count, 0)), fingerprint)

            def write(epoch: int, first: int) -> pathlib.Path:
                return writer.write(order.share(count, epoch)[first:])

            self._supply = _Task(self._files, kind, plan, writer.write(None), write).open(self._position)
        return self._supply


class _Order(NamedTuple):
    """Which rows a rank gets in each epoch. seed: None: they keep their order."""

    epochs: int
    seed: int | None
    ranks: int
    rank: int

    def share(self, count: int, epoch: int) -> numpy.ndarray:
        order = (
            numpy.arange(count)
            if self.seed is None
            else numpy.random.default_rng([self.seed, epoch]).permutation(count)
        )
        return numpy.array_split(order, self.ranks)[self.rank]


class _Rows:
    def __init__(self, given: Any, count: int, names: list[str]) -> None:
        self._given = given
        self.count = count
        self.names = names

    @staticmethod
    def of(given: Any, name: str) -> _Rows:
        if isinstance(given, Mapping):
            counts = {column: length_of(values) for column, values in given.items()}
            if len(set(counts.values())) > 1:
                raise SupplyError(f"{name}: the columns have different numbers of rows: {counts}")
            rows = _Rows(given, max(counts.values(), default=0), list(given))
        elif hasattr(given, "iloc"):
            rows = _Rows(given, len(given), list(given.columns))
        elif hasattr(given, "__arrow_c_stream__"):
            import pyarrow

            table = pyarrow.table(given)
            rows = _Rows(table, len(table), table.column_names)
        else:
            raise ConfigError(
                f"{name} is {shown(given)}: it must be a dict by column of arrays, tensors and lists, a pandas "
                "DataFrame, or a table of Arrow"
            )
        if rows.count == 0:
            raise SupplyError(f"{name} has no rows: give at least one, which says what the columns are")
        return rows

    def taken(self, places: numpy.ndarray | None) -> Any:
        """The rows at those places. None: all."""
        if places is None:
            return self._given
        if isinstance(self._given, Mapping):
            return {name: _taken(values, places) for name, values in self._given.items()}
        return self._given.iloc[places] if hasattr(self._given, "iloc") else self._given.take(places)


def _taken(values: Any, places: numpy.ndarray) -> Any:
    if isinstance(values, Mapping):
        return {name: _taken(part, places) for name, part in values.items()}
    if isinstance(values, Jagged):
        return [values.values[values.offsets[place] : values.offsets[place + 1]] for place in places]
    if isinstance(values, (list, tuple)):
        return [values[place] for place in places]
    return values.iloc[places] if hasattr(values, "iloc") else values[places]


class _Writer:
    """Makes block files of rows, in which they have the form that they have in a buffer."""

    def __init__(self, files: RunFiles, kind: str, rows: _Rows) -> None:
        self._files = files
        self._kind = kind
        self._rows = rows
        self._folder = pathlib.Path(files.folder, f"{kind}-rows")
        self._folder.mkdir(exist_ok=True)
        self._number = 0
        # All rows say which types the columns have.
        self._fields: list[_core.ResultField] | None = None

    def write(self, places: numpy.ndarray | None) -> pathlib.Path:
        name, self._number = f"rows-{self._number}", self._number + 1
        out = create_results(
            name,
            self._fields,
            self._files.config(self._kind),
            0,
            rank=0,
            block=self._files.block,
            results_folder=self._folder,
        )
        with out:
            if places is None or len(places):
                out.write(self._rows.taken(places))
            self._fields = out._fields
        return self._folder / f"{self._kind}-0.mapped.{name}.result"


class _Kept(RankCheckpoints):
    """What data.save() has saved, in the memory of this process."""

    def __init__(self, attempt: Attempt, rank: int) -> None:
        super().__init__(attempt, rank, _no_connection, lambda message: None)
        # With their positions.
        self.saves: list[tuple[str | None, bytes]] = []
        self._begins_from: bytes | None = None

    def resume_from(self, other: _Kept) -> None:
        if not other.saves:
            raise ConfigError("resume: this data set has saved nothing by data.save()")
        position, self._begins_from = other.saves[-1]
        self.attempt.positions = [position] * (self.rank + 1)
        self.attempt.holders = [self.rank]

    def load(self, rank: int | None = None) -> Any:
        if self._begins_from is None or rank not in (None, self.rank):
            return None
        return loaded(io.BytesIO(self._begins_from))

    def _keep(self, number: int, state: Any, position: str | None) -> None:
        self.saves.append((position, dumped(state).getvalue()))


def _no_connection() -> Any:
    raise SupplyError("there is no driver")


class _Plan(NamedTuple):
    """epoch_rows: of this rank. fingerprint: of the rows and their order; 0: nothing resumes there."""

    epochs: int
    epoch_rows: int
    fingerprint: int


def _number(name: str) -> int:
    """A constant of the contract, or the size of a structure."""
    return _core.layout[name][0]


class _Fields:
    """The numbers of a structure of the contract."""

    def __init__(self, memory: Any, structure: str = "mapped_file_header", begin: int = 0) -> None:
        self.memory = memory
        self._structure = structure
        self._begin = begin

    def _place(self, name: str) -> slice:
        offset, size = _core.layout[f"{self._structure}.{name}"]
        return slice(self._begin + offset, self._begin + offset + size)

    def __getitem__(self, name: str) -> int:
        return int.from_bytes(self.memory[self._place(name)], "little")

    def set(self, **numbers: int) -> None:
        for name, number in numbers.items():
            place = self._place(name)
            self.memory[place] = number.to_bytes(place.stop - place.start, "little")


class _Task:
    """Spark's side of a buffer, in the process of the rank: it publishes when the rank asks (proto/PROTOCOL.md).

    typed: a block file with the schema. write: makes the block file of an epoch, from that row of it on.
    """

    def __init__(
        self, files: RunFiles, kind: str, plan: _Plan, typed: pathlib.Path, write: Callable[[int, int], pathlib.Path]
    ) -> None:
        self._files = files
        self._kind = kind
        self._plan = plan
        self._typed = typed
        self._write = write
        self._ends = contextlib.ExitStack()

    def open(self, position: str | None) -> Reader:
        """The rank's side. It begins after that position."""
        options = passed_options(self._files.config(self._kind), 0, 0, None, None, self._files.results_folder)
        pair = _core.Pair(**options, timeout=_SECONDS, ring_bytes=0, position=position or "", exchange=False)
        reader = _FedReader(pair, self)
        weakref.finalize(reader, self._ends.close)
        self._attach()
        return reader

    def _attach(self) -> None:
        [mapped], [pipes] = (text.splitlines() for text in self._files.config_texts(self._kind))
        places = ((mapped.split()[0], os.O_RDWR), *zip(pipes.split(), (os.O_RDONLY, os.O_WRONLY), strict=True))
        file, _, self._notifications = descriptors = [os.open(path, flags | os.O_NONBLOCK) for path, flags in places]
        for descriptor in descriptors:
            self._ends.callback(os.close, descriptor)
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _number("constant.TASK_LOCK_BYTE"), 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        memory = self._ends.enter_context(mmap.mmap(file, 0))
        self._header = header = _Fields(memory)
        if header["start_plan"] not in (0, self._plan.fingerprint):
            raise SupplyError("this state is of other rows, or of another order, number of ranks or number of epochs")
        header.set(run=1, task_pid=os.getpid(), plan=self._plan.fingerprint or 1)
        header.set(attachments=header["attachments"] + 1)
        if not header["start_inside"]:
            header.set(epoch_elements=self._plan.epoch_rows, counts_known=1)
        typed = self._typed.read_bytes()
        columns, wide = _Fields(typed)["schema_columns"], _Fields(typed)["schema_bytes"]
        begin = _number("constant.RING_OFFSET" if wide else "constant.SCHEMA_OFFSET")
        schema = slice(begin, begin + (wide or columns * _number("schema_entry.SIZE")))
        if wide:
            os.pwrite(file, typed[schema], header["file_bytes"])
        else:
            memory[schema] = typed[schema]
        header.set(schema_bytes=wide, schema_columns=columns)
        self._rest = self._blocks()

    def _blocks(self) -> Iterator[tuple[int, bytes, int, int, int]]:
        """Of each block its kind, image, rows, epoch and first row."""
        empty = bytes(_number("block_header.SIZE"))
        begin, inside = self._header["start_epoch"], self._header["start_inside"]
        for epoch in range(begin, self._plan.epochs):
            first = self._header["start_element"] if inside and epoch == begin else 0
            for image, rows in _images(self._write(epoch, first)):
                yield _number("constant.NOTIFICATION_BLOCK"), image, rows, epoch, first
                first += rows
            yield _number("constant.NOTIFICATION_END_OF_EPOCH"), empty, 0, epoch, 0
        yield _number("constant.NOTIFICATION_END_OF_DATA"), empty, 0, self._plan.epochs - 1, 0

    def publish(self) -> None:
        """As many blocks as there is room for."""
        header = self._header
        while (sequence := header["published"]) < header["released"] + header["block_count"]:
            if (block := next(self._rest, None)) is None:
                return
            kind, image, rows, epoch, first = block
            offset = header["ring_offset"] + sequence % header["block_count"] * header["block_bytes"]
            notification = bytearray(_number("notification.SIZE"))
            _Fields(notification, "notification").set(
                generation=header["generation"], kind=kind, element_count=rows, sequence=sequence, epoch=epoch,
                first_element=first, offset=offset, size=len(image),
            )  # fmt: skip
            header.memory[offset : offset + len(image)] = notification + image[len(notification) :]
            header.set(published=sequence + 1)
            os.write(self._notifications, notification)
            if kind == _number("constant.NOTIFICATION_END_OF_DATA"):
                # The rank waits for it when it closes.
                header.set(end_seen=1)


def _images(path: pathlib.Path) -> Iterator[tuple[bytes, int]]:
    """The blocks of a block file, and their rows."""
    memory = path.read_bytes()
    header = _Fields(memory)
    for number in range(header["block_count"]):
        begin = header["ring_offset"] + number * header["block_bytes"]
        notification = _Fields(memory, "notification", begin)
        yield memory[begin : begin + notification["size"]], notification["element_count"]


class _FedReader(Reader):
    """A Reader whose blocks are published when it asks for one."""

    def __init__(self, pair: _core.Pair, task: _Task) -> None:
        super().__init__(pair)
        self._task = task

    def _receive(self, once: bool) -> Block | None:
        if not self.closed:
            self._task.publish()
        return super()._receive(once)


def _copied(block: Block) -> Any:
    import pyarrow

    rows = pyarrow.record_batch(block)
    return pyarrow.ipc.read_record_batch(rows.serialize(), rows.schema)
