"""Opens a rank's side of its pair. An extension does what only some runs need: exchange.py."""

from __future__ import annotations

import importlib
import inspect
import os
import pathlib
from typing import TYPE_CHECKING, Any, Union

from spark_supplier import _core
from spark_supplier.arguments import optional_size, refuse_unknown, seconds, whole_number
from spark_supplier.errors import ConfigError
from spark_supplier.pair import Reader
from spark_supplier.results import ResultWriter

if TYPE_CHECKING:
    from mpi4py import MPI

    from spark_supplier.exchange import Policy


def extension(name: str) -> Any:
    """A module that builds on this one. It is loaded when an option asks for it."""
    return importlib.import_module(f"spark_supplier.{name}")


Path = Union[str, "os.PathLike[str]"]
Config = Union[Path, tuple[Path, Path], None]


def open(
    config: Config = None,
    local_rank: int | None = None,
    *,
    rank: int | None = None,
    timeout: float | None = None,
    ring: int | str | None = None,
    block: int | str | None = None,
    group: str | None = None,
    position: str | None = None,
    results_folder: Path | None = None,
    exchange: Policy | None = None,
    comm: Any = None,
    reader: int | None = None,
    readers: int | None = None,
    connect: str | None = None,
    key: str | None = None,
) -> Reader:
    """Opens this rank's side of its buffer (a pair, docs/RANKS.md), without waiting for Spark.

    Parameters
    ----------
    config : str, path, or pair of paths, optional
        The folder with mapped-files.conf and named-pipes.conf, or the paths of both files. Default: SUPPLY_MAPPED_FILES
        and SUPPLY_NAMED_PIPES of the environment, unless the rank connects.
    local_rank : int, optional
        The rank's number on its node, from 0, which is its line in both files. Default: from the launcher's
        environment.
    rank : int, optional
        The rank's number in the job, which Spark's task compares with its own. Default: from the launcher's
        environment.
    timeout : float, optional
        Limit of each wait in seconds. Default: SUPPLY_TIMEOUT, or 120.
    ring, block : int or str, optional
        Sizes of the buffer and of a block in it: bytes, or a text as "8MiB". Default: from the config line, or four
        blocks of 2 MiB.
    group : str, optional
        The group whose members may feed this rank. Default: from the config line (docs/SECURITY.md).
    position : str, optional
        Resume after this position of an earlier run of the same plan: partitions, ranks, seed, shuffle (with
        exchange-fraction), uneven. Default: from the beginning.
    results_folder : str or path, optional
        An absolute path, where results() writes. Default: SUPPLY_RESULTS_FOLDER, or the mapped file's folder.
    exchange : {"supplied", "all", "balance"} or Exchange, optional
        The ranks exchange rows before you read them. The call then waits for all ranks of `comm`, and so does each
        block. Default: no exchange.
    comm : mpi4py.MPI.Comm or torch.distributed.ProcessGroup, optional
        The ranks of the exchange: all of the job. A group must serve nothing else. Default: a group beside
        torch.distributed's default group if that is initialized, else MPI.COMM_WORLD if mpi4py is imported.
    reader, readers : int, optional
        This rank and its neighbours on the node read one buffer: it is reader number `reader`, from 0, of `readers`
        ranks, and each of them gets every row. Spark needs the same share (docs/SHARE.md). Reader 0 opens at once;
        the others wait for it. Default: SUPPLY_SHARE, or a buffer of its own.
    connect : str, optional
        Address of a run that Spark serves, "supply://HOST:PORT/RUN", or with TLS "supplys://…" (docs/FEEDERS.md): the
        rank gets its rows over a connection, on a node that needs no Spark. Default: SUPPLY_CONNECT, if there is no
        config.
    key : str, optional
        The key that Spark's side prints. Default: SUPPLY_KEY.

    Returns
    -------
    Reader

    Raises
    ------
    ConfigError
        An option or a config file is wrong.
    InUseError
        Another process has opened the buffer.
    NoSpaceError, SupplyOSError, SupplyMemoryError, SupplyError
        The buffer cannot be made.

    Examples
    --------
    ::

        with spark_supplier.ranks.open("/dev/shm/my-run/conf") as reader:
            for block in reader:
                x = block.numpy("data")
    """
    if timeout is not None:
        seconds("timeout", timeout)
    if exchange is None and comm is not None:
        raise ConfigError("comm is only for an exchange: set exchange=, too, or leave comm out")
    shared = _readers(reader, readers)
    policy = None if exchange is None else extension("exchange").exchange_of(exchange)
    transport = None if policy is None else extension("exchange").transport_over(comm, timeout)
    pair = _core.Pair(
        **passed_options(config, local_rank, rank, block, group, results_folder),
        timeout=timeout or 0,
        ring_bytes=optional_size("ring", ring) or 0,
        position=position or "",
        exchange=policy is not None,
        reader=shared[0],
        readers=shared[1],
        connect=connect or "",
        key=key or "",
    )
    if policy is not None and transport is not None:
        try:
            policy._open(pair, transport)
        except BaseException as error:
            pair.abort(f"{type(error).__name__}: {error}")
            raise
    return Reader(pair)


def _readers(reader: int | None, readers: int | None) -> tuple[int, int]:
    if (reader is None) != (readers is None):
        raise ConfigError(f"reader is {reader}, and readers is {readers}: give both, or neither")
    if reader is None or readers is None:
        return 0, 0
    most = whole_number("readers", readers, 1)
    if whole_number("reader", reader, 0) >= most:
        raise ConfigError(f"reader is {reader}, and readers is {readers}: readers are counted from 0")
    return reader, readers


def create_results(
    name: str = "results",
    schema: Any = None,
    config: Config = None,
    local_rank: int | None = None,
    *,
    rank: int | None = None,
    block: int | str | None = None,
    group: str | None = None,
    results_folder: Path | None = None,
) -> ResultWriter:
    """Begins a result as Reader.results(), in a program that only writes: no buffer for rows is opened.

    Results of earlier runs stay: a sealed one of that name is a SupplyError. So let every rank begin before one seals
    (a barrier): otherwise parts of two runs may be taken for one result. Spark removes results that it has read. Such a
    result names no Spark process, so supply-clean removes it unless Spark reads it at that moment.

    Parameters
    ----------
    name, schema
        As for Reader.results().
    config, local_rank, rank, block, group, results_folder : optional
        As for open(). The config says in which folder and under which name Spark looks for this rank's part.

    Returns
    -------
    ResultWriter

    Examples
    --------
    ::

        with spark_supplier.ranks.create_results("predictions", config="/dev/shm/my-run/conf") as out:
            out.write({"id": ids, "score": scores})
    """
    options = passed_options(config, local_rank, rank, block, group, results_folder)
    return ResultWriter(lambda name, fields: _core.Result(**options, name=name, fields=fields), name, schema)


# Those that have a name.
OPEN_OPTIONS = tuple(inspect.signature(open).parameters)[2:]


def from_comm(comm: MPI.Comm, config: Config = None, **options: Any) -> Reader:
    """Opens this rank's buffer as open(), with both ranks from an mpi4py communicator. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        It spans the job, as MPI.COMM_WORLD does. An exchange uses it, too.
    config : optional
        As for open().
    **options
        timeout, ring, block, group, position, results_folder, exchange, reader, readers, connect and key of open().

    Returns
    -------
    Reader
    """
    refuse_unknown("from_comm", options, OPEN_OPTIONS)
    if options.get("exchange") is not None:
        options.setdefault("comm", comm)
    return open(config, _local_rank(comm), rank=comm.rank, **options)


def _local_rank(comm: MPI.Comm) -> int:
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    local_rank: int = node.rank
    node.Free()
    return local_rank


def passed_options(
    config: Config,
    local_rank: int | None,
    rank: int | None,
    block: int | str | None,
    group: str | None,
    results_folder: Path | None,
) -> dict[str, Any]:
    """What libsupply gets of these options of open() and create_results()."""
    for name, number in (("local_rank", local_rank), ("rank", rank)):
        if number is not None:
            whole_number(name, number)
    if isinstance(config, (str, os.PathLike)):
        folder = pathlib.Path(config)
        config = (folder / "mapped-files.conf", folder / "named-pipes.conf")
    mapped_files, named_pipes = config or ("", "")
    return {
        "mapped_files": os.fspath(mapped_files), "named_pipes": os.fspath(named_pipes),
        "local_rank": -1 if local_rank is None else local_rank, "rank": -1 if rank is None else rank,
        "block_bytes": optional_size("block", block) or 0, "group": group or "",
        "results_folder": os.fspath(results_folder or ""),
    }  # fmt: skip
