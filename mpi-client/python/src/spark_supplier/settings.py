"""What a user sets: the options of Rows, of a Supplier, and of what stands in them. It loads no large package.

Each option is declared here with its check, a function of its name and value that returns the value to use. To add one,
write both, and use it.
"""

from __future__ import annotations

import contextlib
import functools
import numbers
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from spark_supplier.arguments import (
    BATCH_CHECKS,
    brief,
    close_to,
    column_names,
    duration,
    one_of,
    optional_size,
    refuse_unknown,
    seconds,
    shown,
    whole_number,
)
from spark_supplier.errors import ConfigError, RunConfigError

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

Check = Callable[[str, Any], Any]

# Of the key of ranks elsewhere.
_KEY_CHARACTERS = 16


@contextlib.contextmanager
def as_run_errors() -> Iterator[None]:
    """On the driver, also a wrong argument is a RunError (errors.py)."""
    try:
        yield
    except ConfigError as error:
        raise RunConfigError(str(error)) from None


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _as_given(check: Check) -> Check:
    def checked(name: str, value: Any) -> Any:
        if value is not None:
            check(name, value)
        return value

    return checked


_at_least_one = partial(whole_number, least=1)


class Checked:
    """A frozen dataclass of options, whose text has those that are not the defaults."""

    _checks: ClassVar[Mapping[str, Check]]

    def __post_init__(self) -> None:
        with as_run_errors():
            for name, check in self._checks.items():
                object.__setattr__(self, name, check(name, getattr(self, name)))
            self._check_together()

    def _check_together(self) -> None:
        """Raises ConfigError for options that do not go together."""

    def __repr__(self) -> str:
        options = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            is_plain = isinstance(value, (bool, int, float, str))
            if value is not each.default and not (is_plain and value == each.default):
                options.append(_shown(each.name, value))
        return f"{type(self).__name__}({', '.join(options)})"


def _shown(name: str, value: Any) -> str:
    if hasattr(value, "columns") and hasattr(value, "schema"):
        # The text of a DataFrame may compute it. Its columns are short.
        return f"{name}=DataFrame[{brief(', '.join(value.columns))[1:-1]}]"
    if name == "environment":
        # It may have keys.
        value = list(value)
    if name == "key":
        return "key=…"
    return f"{name}={brief(value)}"


def _fraction(name: str, value: Any) -> Any:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) <= 1:
        raise ConfigError(f"{name} is {brief(value)}: it must be above 0 and at most 1")
    return float(value)


_SHUFFLES = ("none", "partitions", "rows", "all")


@dataclass(frozen=True, repr=False)
class Shuffle(Checked):
    """The order of the rows of an epoch, with a setting that the word alone does not have.

    Parameters
    ----------
    how : {"rows", "all", "partitions", "none"}
        As `Rows.shuffle`.
    buffer : int, optional
        With "rows": the number of rows from which Spark draws the next one. Each task keeps them on its executor's
        heap. A buffer as large as a partition shuffles it fully. Default: 1024.
    fraction : float, optional
        With "all": the part of its rows that each rank exchanges with other ranks, above 0 and at most 1. Default: 1.

    Examples
    --------
    >>> from spark_supplier import Shuffle
    >>> Shuffle("rows", buffer=100_000)
    Shuffle(how='rows', buffer=100000)
    """

    how: Literal["none", "partitions", "rows", "all"]
    buffer: int | None = None
    fraction: float | None = None

    _checks = {
        "how": partial(one_of, choices=_SHUFFLES),
        "buffer": _optional(_at_least_one),
        "fraction": _optional(_fraction),
    }

    def _check_together(self) -> None:
        for name, value, how in (("buffer", self.buffer, "rows"), ("fraction", self.fraction, "all")):
            if value is not None and self.how != how:
                raise ConfigError(f"{name} is for Shuffle({how!r}), and this is {self.how!r}: leave it out")


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str) or value in ("", "true", "false"):
        raise ConfigError(f"{name} is {brief(value)}: it must be a text that says which data the file has")
    return value


def _path(name: str, value: Any, what: str = "the path of a folder") -> str:
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
    if not text or ("absolute" in what and not os.path.isabs(text)):
        raise ConfigError(f"{name} is {shown(value)}: it must be {what}")
    return str(text)


_node_folder = partial(_path, what="the absolute path of a folder on a disk of each node")


@dataclass(frozen=True, repr=False)
class Cache(Checked):
    """Files on each node in which ranks read the rows of later epochs, so that Spark computes them once.

    Parameters
    ----------
    folder : str or path
        An absolute path on a local disk of each node. It is made if it is missing.
    quota : int or str, optional
        The most that a call may write on each node: bytes, or a text as "500GiB". Default: as much as there is space.
    keep : str, optional
        The files stay after the call, under this name. A later call with the same rows, number of ranks, seed, shuffle
        and batch size reads them from its first epoch on, and Spark computes nothing. Spark cannot see what the rows
        are: the name must say it. Remove the files (`*.kept`) yourself. Default: the files go with the call.

    Examples
    --------
    >>> from spark_supplier import Cache
    >>> Cache("/scratch/cache", quota="500GiB")
    Cache(folder='/scratch/cache', quota='500GiB')
    """

    folder: str | os.PathLike[str]
    quota: int | str | None = None
    keep: str | None = None

    _checks = {"folder": _node_folder, "quota": _as_given(optional_size), "keep": _optional(_name)}


@dataclass(frozen=True, repr=False)
class Checkpoints(Checked):
    """Where `data.save(state)` saves, and how often.

    Parameters
    ----------
    folder : str or path
        A folder of any file system that the driver's Hadoop knows, as "hdfs:///checkpoints/train" or
        "file:///data/checkpoints". Rows must be repeatable.
    every : float or str, optional
        Between two checkpoints, at least: seconds, or a text as "10 min". `data.save(state)` does nothing before that.
        Default: each call saves.
    keep : int
        How many of the newest checkpoints stay in the folder.

    Examples
    --------
    >>> from spark_supplier import Checkpoints
    >>> Checkpoints("hdfs:///checkpoints/train", every="10 min")
    Checkpoints(folder='hdfs:///checkpoints/train', every='10 min')
    """

    folder: str | os.PathLike[str]
    every: float | str | None = None
    keep: int = 3

    _checks = {"folder": _path, "every": _as_given(duration), "keep": _at_least_one}

    @property
    def seconds(self) -> float | None:
        """`every` as a number."""
        return None if self.every is None else duration("every", self.every)


def _run_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z0-9_-]{1,64}", value):
        raise ConfigError(f"{name} is {shown(value)}: a name has 1 to 64 of the characters A-Z a-z 0-9 _ -")
    return value


def _key(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) < _KEY_CHARACTERS:
        raise ConfigError(f"{name} must be a text of at least {_KEY_CHARACTERS} characters that nobody guesses")
    return value


@dataclass(frozen=True, repr=False)
class Mpirun(Checked):
    """A launcher: the driver starts the ranks by mpirun, for functions that use MPI.

    In the allocation of Slurm's job if there is one, else on this machine. MPIRUN of the environment is another mpirun
    or MPICH's mpiexec, with options of your own.

    Parameters
    ----------
    host_file : str or path, optional
        The nodes of the ranks, in Open MPI's format. Spark needs executors on its hosts.

    Examples
    --------
    >>> from spark_supplier import Mpirun
    >>> Mpirun(host_file="/etc/hosts.mpi")
    Mpirun(host_file='/etc/hosts.mpi')
    """

    host_file: str | os.PathLike[str] | None = None

    _checks = {"host_file": _optional(partial(_path, what="the path of a file"))}


@dataclass(frozen=True, repr=False)
class Elsewhere(Checked):
    """A launcher: something else starts the ranks, on nodes without Spark: torchrun, an operator of Kubernetes, Slurm.

    Their program calls spark_supplier.connect(). Supplier.run prints the address and the key that it needs, waits for
    the ranks, and supplies them over connections (docs/FEEDERS.md).

    Parameters
    ----------
    run : str
        The name of the run in the address, so that ranks may know it before: 1 to 64 of A-Z a-z 0-9 _ -.
    key : str, optional
        Who knows it can be a rank. Default: SUPPLY_KEY of the environment, or a new one.
    start : function, optional
        Starts the ranks: it is called with their SUPPLY_CONNECT and SUPPLY_KEY, as a dict, and returns soon.

    Examples
    --------
    >>> from spark_supplier import Elsewhere
    >>> Elsewhere("train").run
    'train'
    """

    run: str = "supply"
    key: str | None = None
    start: Callable[[dict[str, str]], object] | None = None

    _checks = {"run": _run_name, "key": _optional(_key), "start": BATCH_CHECKS["transform"]}


def _shuffle(name: str, value: Any) -> Any:
    return value if isinstance(value, Shuffle) else one_of(name, value, _SHUFFLES)


def _cache(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Cache) or (isinstance(value, str) and value == "memory"):
        return value
    try:
        return _node_folder(name, value)
    except ConfigError as error:
        hint = close_to(value, ["memory"])
        raise ConfigError(f"{error}, or Cache(folder, …), or 'memory'{hint}") from None


def _share(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "node":
        return value
    try:
        return whole_number(name, value, 1)
    except ConfigError:
        raise ConfigError(f"{name} is {brief(value)}: it must be a number of neighbouring ranks, or 'node'") from None


def _seed(name: str, value: Any) -> int:
    seed = whole_number(name, value)
    if not -(2**63) <= seed < 2**63:
        raise ConfigError(f"{name} is {seed}: it must be below 2**63, and not below -2**63")
    return seed


def _repartition(name: str, value: Any) -> str | int | bool:
    if value is False or (isinstance(value, str) and value == "auto"):
        return value
    try:
        return whole_number(name, value, 1)
    except ConfigError:
        raise ConfigError(f"{name} is {brief(value)}: it must be 'auto', False, or a number of partitions") from None


@dataclass(frozen=True, repr=False)
class Rows(Checked):
    """The rows of a DataFrame for ranks, and how ranks get them.

    Parameters
    ----------
    df : DataFrame
        Only Spark's own shuffles and `cache` write it to disk, and training starts while Spark still computes it. Each
        epoch computes it again, unless it is persisted, or cached here.
    columns : list of str, optional
        The columns of df that ranks get. "point.x" is a field of the struct "point". Default: all.
    batch_size : int
        Rows of a batch of one rank.
    epochs : int
        How often ranks get all rows.
    seed : int
        Of the order. With the same seed each rank gets the same rows in the same order.
    shuffle : {"partitions", "none", "rows", "all"} or Shuffle
        "partitions": a rank gets its partitions in a new order in each epoch. "none": in Spark's order. "rows": also
        the rows of each partition, within a buffer. "all": as "partitions", and ranks exchange rows, so that each gets
        rows of all partitions; over torch.distributed, or with `Mpirun` over mpi4py. Rows of `validation` are not
        exchanged.
    uneven : {"keep", "drop", "pad"}, optional
        The steps of ranks that get different numbers of rows. "keep": each row once; ranks may make different numbers
        of steps. "drop": as many steps as the rank with the fewest full batches. "pad": as many as the rank with the
        most; the others repeat rows. If rows were repeated or left out, the call says at its end how many. Default:
        "pad" if a backend is initialized, since collectives need equal steps, else "keep"; with results= "keep".
    repartition : {"auto", False} or int
        "auto": if df has fewer partitions than ranks, or one rank would get more than twice the rows of another, as far
        as Spark knows before it computes the rows, they are repartitioned round-robin (a shuffle), with a warning.
        False: never. A number: always, over that number of partitions. The same for `validation`.
    order : {"ranks", "global"}
        "ranks": each rank has its own order, of its own partitions. "global": there is one order of all rows, a
        function of seed, shuffle and epoch, and `batch_size` is that of all ranks together: each rank gets a run of
        each batch. So the sequence of batches is the same with any number of ranks, also if a restart has fewer. One
        task on each node computes all rows, for all ranks there: with several nodes, persist a df that is costly. It
        must not come from a shuffle.
    validation : DataFrame, optional
        Rows with the same columns, which ranks get in each epoch as `data.validation`.
    transform : function, optional
        Makes what the loop gets of a batch, a dict by column. Set only one of `transform` and `collate_fn`.
    collate_fn : function, optional
        Makes what the loop gets of a list of rows. Each is a dict by column.
    dtypes : dict, optional
        Types of tensors by column, as {"label": torch.long}. The other columns keep Spark's types. Floats that become
        torch.float16 travel in half precision. A setting of `dtypes`, `ragged` or `nulls` for a list or a struct holds
        for everything in it; "point.x" is one field, "scores.values" the values of a map.
    ragged : dict or {"jagged", "list", "pad", "nested"}, optional
        Forms of lists, text and bytes of different lengths, by column, or of all lists. "jagged":
        `spark_supplier.torch.Jagged`. "list": a Python list, for each row a tensor, str or bytes. "pad": a dense
        tensor, with zeros up to the longest list of the batch. "nested": a torch.nested tensor with jagged layout.
        "sparse": of vectors of Spark, a torch.sparse_csr tensor. Default: a column of arrays that all have one length
        in the first rows is a tensor of more dimensions, and an array of another length is an error; vectors are dense,
        other lists are jagged, text is a list, and bytes must have one length, and are a tensor of uint8.
    nulls : dict, optional
        By column, the value that a null gets: a number, for text a text, for bytes in a list or jagged bytes; or
        "mask": a null is 0 or empty, and the batch has a column NAME_mask of bool that is True where there is a value.
        Default: a null text is None, and a null elsewhere is an error.
    zero_copy : bool
        A batch inside one block is not copied, except with order="global". It occupies the ring while you keep it; do
        not change it in place.
    cache : {"memory"}, folder or Cache, optional
        Where ranks read the rows of later epochs, so that Spark computes them once. "memory": in files in the
        memory of each node. A folder, or `Cache`: in files on a local disk of each node.
    share : int or "node", optional
        How many neighbouring ranks of a node are a group, which gets the same batches in the same order, as
        tensor-parallel ranks need them. "node": all ranks of a node. The group reads one ring, so Spark computes and
        copies each row once for it. `RANK // share` is its number. What this class says of a rank holds for a group.
        With results= the call returns the rows of the first rank of each group, and what the others write is dropped.
        Default: each rank is on its own.

    Raises
    ------
    RunError
        An option is wrong: it is also a ValueError.

    Examples
    --------
    >>> from spark_supplier import Rows, Supplier, session
    >>> df = session().range(100)
    >>> Rows(df, batch_size=10, epochs=2)
    Rows(df=DataFrame[id], batch_size=10, epochs=2)
    >>> Supplier(ranks=1).run(lambda data: sum(1 for batch in data), Rows(df, batch_size=10))
    10
    """

    df: DataFrame
    _: KW_ONLY
    columns: Iterable[str] | None = None
    batch_size: int = 32
    epochs: int = 1
    seed: int = 0
    shuffle: Literal["none", "partitions", "rows", "all"] | Shuffle = "partitions"
    uneven: Literal["keep", "drop", "pad"] | None = None
    repartition: Literal["auto", False] | int = "auto"
    order: Literal["ranks", "global"] = "ranks"
    validation: DataFrame | None = None
    transform: Callable[[Any], Any] | None = None
    collate_fn: Callable[[Any], Any] | None = None
    dtypes: Mapping[str, torch.dtype] | None = None
    ragged: Mapping[str, str] | str | None = None
    nulls: Mapping[str, Any] | None = None
    zero_copy: bool = False
    cache: str | os.PathLike[str] | Cache | None = None
    share: int | Literal["node"] | None = None

    _checks = {
        **BATCH_CHECKS,
        "columns": _optional(lambda _, value: column_names(value)),
        "epochs": _at_least_one,
        "seed": _seed,
        "shuffle": _shuffle,
        "uneven": _optional(BATCH_CHECKS["uneven"]),
        "repartition": _repartition,
        "order": partial(one_of, choices=("ranks", "global")),
        "cache": _cache,
        "share": _optional(_share),
    }

    def _check_together(self) -> None:
        how = self.shuffle.how if isinstance(self.shuffle, Shuffle) else self.shuffle
        if self.order == "global" and how == "all":
            raise ConfigError(
                "order='global' gives all ranks one order, which shuffle='all' would change: set one of them"
            )
        if self.order == "global" and self.cache is not None:
            raise ConfigError("cache repeats the blocks of each rank, which order='global' changes: set one of them")
        if self.order == "global" and self.share is not None:
            raise ConfigError("order='global' deals each batch to all ranks, and share to groups: set one of them")
        if self.cache is not None and how == "rows":
            raise ConfigError(
                "cache repeats the first epoch's blocks, so shuffle='rows' cannot be: use 'partitions' or 'none'"
            )


def _launcher(name: str, value: Any) -> Any:
    if isinstance(value, (Mpirun, Elsewhere)) or (isinstance(value, str) and value in ("torch", "here")):
        return value
    if isinstance(value, str) and value == "elsewhere":
        return Elsewhere()
    hint = close_to(value, ["torch", "here", "elsewhere"])
    raise ConfigError(
        f"{name} is {brief(value)}: it must be 'torch', 'here', 'elsewhere', Elsewhere(…), or Mpirun(host_file=…){hint}"
    )


def _backend(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} is {shown(value)}: it must be 'auto', a backend of torch.distributed, or None")
    return value


def _checkpoints(name: str, value: Any) -> Any:
    return value if isinstance(value, Checkpoints) else Checkpoints(_path(name, value))


def memory_folder(name: str, value: Any) -> str:
    """The config files name pairs below it, and white space ends a name there."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(value, bytes):
        raise ConfigError(f"{name} is {shown(value)}: it must be the path of a folder in memory, as '/dev/shm'")
    path = os.fspath(value)
    if not os.path.isabs(path) or path.split() != [path]:
        raise ConfigError(
            f"{name} is {path!r}: it must be an absolute path without blanks, since each node has it and the config "
            "files of ranks are divided at white space"
        )
    return path


def _environment(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {shown(value)}: it must be a dict of texts")
    for variable, text in value.items():
        if not isinstance(variable, str) or not isinstance(text, str):
            raise ConfigError(f"{name} has {variable!r}: {shown(text)}: names and values must be texts")
    return dict(value)


@dataclass(eq=False, repr=False)
class SupplierOptions(Checked):
    """Those of a Supplier, which documents them."""

    ranks: int
    _: KW_ONLY
    launcher: Literal["torch", "here", "elsewhere"] | Mpirun | Elsewhere = "torch"
    backend: str | None = "auto"
    restarts: int = 0
    min_ranks: int | None = None
    checkpoints: str | os.PathLike[str] | Checkpoints | None = None
    start_timeout: float = 120
    stall_timeout: float | None = None
    idle_timeout: float = 600
    ring: int | str | None = None
    block: int | str | None = None
    folder: str | os.PathLike[str] = "/dev/shm"
    environment: Mapping[str, str] | None = None
    on_report: Callable[[dict[str, Any]], object] | None = None

    _checks = {
        "ranks": _at_least_one,
        "launcher": _launcher,
        "backend": _backend,
        "restarts": partial(whole_number, least=0),
        "min_ranks": _optional(_at_least_one),
        "checkpoints": _optional(_checkpoints),
        "start_timeout": seconds,
        "stall_timeout": _optional(seconds),
        "idle_timeout": seconds,
        "ring": _as_given(optional_size),
        "block": _as_given(optional_size),
        "folder": memory_folder,
        "environment": _optional(_environment),
        "on_report": BATCH_CHECKS["transform"],
    }

    def _check_together(self) -> None:
        if self.launcher == "here":
            self._check_here()
        if isinstance(self.launcher, Elsewhere) and self.min_ranks is not None:
            raise ConfigError("min_ranks is set, and ranks elsewhere know their number: leave it out")
        if self.min_ranks is not None and self.min_ranks > self.ranks:
            raise ConfigError(f"min_ranks is {self.min_ranks}, and ranks is {self.ranks}: it must be at most as large")
        if isinstance(self.checkpoints, Checkpoints) and self.checkpoints.every is not None and self.backend is None:
            raise ConfigError(
                "Checkpoints(every=…) needs a backend, over which ranks agree on the step: leave every out, and call "
                "data.save(state) when a checkpoint is due"
            )

    def _check_here(self) -> None:
        why = "launcher='here' runs the function in this process"
        if self.ranks != 1:
            raise ConfigError(f"ranks is {self.ranks}, and {why}, which is one rank: use Supplier(1, launcher='here')")
        if self.restarts:
            raise ConfigError(f"restarts is {self.restarts}, and {why}, which cannot start again: leave it out")
        if self.stall_timeout is not None:
            raise ConfigError(f"stall_timeout is set, and {why}, where a debugger may stop it: leave it out")
        if self.backend == "auto":
            self.backend = None


# Where an option is, the one that counts last.
_HOMES = {
    "Rows(df, cache=Cache(folder, {}=…))": Cache,
    "Supplier(ranks, launcher=Mpirun({}=…))": Mpirun,
    "Supplier(ranks, launcher=Elsewhere({}=…))": Elsewhere,
    "Supplier(ranks, checkpoints=Checkpoints(folder, {}=…))": Checkpoints,
    "Rows(df, shuffle=Shuffle(…, {}=…))": Shuffle,
    "Rows(df, {}=…)": Rows,
    "Supplier(ranks, {}=…)": SupplierOptions,
}


def where_is(name: str, parameters: Iterable[str]) -> str:
    """What to write in place of an argument that a function with these parameters does not take; empty: unknown."""
    homes = {each.name: home.format(each.name) for home, kind in _HOMES.items() for each in fields(kind)}
    return f"use {homes[name]}" if name in homes else close_to(name, [*parameters, *homes]).strip(" ()")


def _name_unknown(kind: type[Checked]) -> None:
    """Its constructor says what is meant by an option that does not exist."""
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    make: Any = kind.__init__

    @functools.wraps(make)
    def checked(self: Checked, *args: Any, **options: Any) -> None:
        for name in options:
            hint = where_is(name, known)
            refuse_unknown(type(self).__name__, [name], known, hint and f": {hint}")
        make(self, *args, **options)

    kind.__init__ = checked  # type: ignore[method-assign, assignment]


for _kind in _HOMES.values():
    _name_unknown(_kind)
