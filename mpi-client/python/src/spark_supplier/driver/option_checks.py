"""What a Supplier and Supplier.run check of their options before anything starts."""

from __future__ import annotations

import contextlib
import importlib.util
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_supplier.arguments import brief, close_to, duration, one_of, optional_size, shown, whole_number
from spark_supplier.errors import ConfigError, RunError

SHUFFLES = ("none", "partitions", "elements", "all")


@contextlib.contextmanager
def as_run_errors() -> Iterator[None]:
    """On the driver, also a wrong argument is a RunError (supply/errors.py)."""
    try:
        yield
    except ConfigError as error:
        raise RunError(str(error)) from None


def repartition_option(value: Any) -> str | int:
    """The option repartition: "auto", "false" or a number of partitions."""
    if value is False:
        return "false"
    if isinstance(value, str) and value == "auto":
        return value
    if isinstance(value, numbers.Integral) and value is not True and int(value) > 0:
        return int(value)
    raise RunError(f"repartition is {brief(value)}: it must be 'auto', False, or a number of partitions")


def check_forms(lists: Any, half: Any, vectors: Any, columns: Sequence[str]) -> None:
    """Refuses wrong values of the options that say what columns become."""
    if lists not in ("auto", "varying"):
        raise RunError(f"lists is {brief(lists)}: it must be 'auto' or 'varying'")
    if vectors not in ("dense", "sparse"):
        raise RunError(f"vectors is {brief(vectors)}: it must be 'dense' or 'sparse'")
    if isinstance(half, str) or not isinstance(half, Sequence) or not all(isinstance(name, str) for name in half):
        raise RunError(f"half is {brief(half)}: it must be a list of names of columns")
    for name in half:
        if name not in columns:
            raise RunError(f"half names '{name}', which is no column that ranks get{close_to(name, columns)}")
        if "," in name:
            raise RunError(f"half names '{name}', and its names can have no commas: rename the column")


def exchange_over(shuffle: str, launcher: str, backend: str | None) -> str | None:
    """What the ranks exchange elements over: "mpi" or "torch". None: they do not."""
    if shuffle != "all":
        return None
    if launcher == "torch" and backend is None:
        raise RunError(
            "with shuffle='all' the ranks exchange elements over torch.distributed: leave backend=None out, or use "
            "launcher='mpirun'"
        )
    if launcher == "mpirun" and importlib.util.find_spec("mpi4py") is None:
        raise RunError(
            "with shuffle='all' and launcher='mpirun' the ranks exchange elements over mpi4py, which is not installed: "
            "install it on every node, or use launcher='torch'"
        )
    return "mpi" if launcher == "mpirun" else "torch"


def check_folder(folder: Any) -> str:
    """Supplier(folder=...). The config files name pairs below it, and white space ends a name there."""
    if not isinstance(folder, (str, os.PathLike)) or isinstance(folder, bytes):
        raise ConfigError(f"folder is {shown(folder)}: it must be the path of a folder in memory, as '/dev/shm'")
    path = os.fspath(folder)
    if not os.path.isabs(path) or path.split() != [path]:
        raise ConfigError(
            f"folder is {path!r}: it must be an absolute path without blanks, since each node has it and the config "
            "files of ranks are divided at white space"
        )
    return path


def check_environment(environment: Any) -> dict[str, str]:
    """Supplier(environment=...)."""
    if environment is None:
        return {}
    if not isinstance(environment, Mapping):
        raise ConfigError(f"environment is {shown(environment)}: it must be a dict of texts")
    for name, value in environment.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError(f"environment has {name!r}: {shown(value)}: names and values must be texts")
    return dict(environment)


def check_order(
    epochs: Any, seed: Any, shuffle: Any, shuffle_buffer: Any, exchange_fraction: Any, block_elements: Any, order: Any
) -> None:
    whole_number("epochs", epochs, 1)
    if not -(2**63) <= whole_number("seed", seed) < 2**63:
        raise ConfigError(f"seed is {seed}: it must be below 2**63, and not below -2**63")
    one_of("shuffle", shuffle, SHUFFLES)
    if shuffle_buffer is not None:
        whole_number("shuffle_buffer", shuffle_buffer, 1)
        if shuffle != "elements":
            raise ConfigError(f"shuffle_buffer is for shuffle='elements', and shuffle is {shuffle!r}: set both")
    if exchange_fraction is not None:
        is_number = isinstance(exchange_fraction, numbers.Real) and not isinstance(exchange_fraction, bool)
        if not is_number or not 0 < exchange_fraction <= 1:
            raise ConfigError(f"exchange_fraction is {exchange_fraction!r}: it must be above 0 and at most 1")
        if shuffle != "all":
            raise ConfigError(f"exchange_fraction is for shuffle='all', and shuffle is {shuffle!r}: set both")
    if block_elements is not None:
        whole_number("block_elements", block_elements, 1)
    one_of("order", order, ("ranks", "global"))
    if order == "global" and shuffle == "all":
        raise ConfigError("order='global' gives all ranks one order, which shuffle='all' would change: set one of them")


def check_resident(resident: Any, folder: Any, quota: Any, keep: Any, shuffle: str, order: str) -> None:
    if not isinstance(resident, bool):
        raise ConfigError(f"resident is {shown(resident)}: it must be True or False")
    optional_size("resident_quota", quota)
    for name, value in (("resident_quota", quota), ("keep", keep)):
        if value is not None and folder is None:
            raise ConfigError(f"{name} is for the file that resident_folder names: set both, or neither")
    if keep is not None and (not isinstance(keep, str) or keep in ("", "true", "false")):
        raise ConfigError(f"keep is {keep!r}: it must be a text that says which data the file has")
    if folder is not None:
        if not isinstance(folder, (str, os.PathLike)) or not os.path.isabs(folder):
            raise ConfigError(
                f"resident_folder is {folder!r}: it must be the absolute path of a folder on a disk of each node"
            )
        if resident:
            raise ConfigError("resident keeps the rows in memory, and resident_folder in files: set one of them")
    if order == "global" and (resident or folder is not None):
        name = "resident" if resident else "resident_folder"
        raise ConfigError(f"{name} repeats the blocks of each rank, which order='global' changes: set one of them")
    if shuffle == "elements" and (resident or folder is not None):
        name = "resident" if resident else "resident_folder"
        raise ConfigError(
            f"{name} repeats the first epoch's blocks, so shuffle='elements' cannot be: use 'partitions' or 'none'"
        )


def check_min_ranks(min_ranks: Any, ranks: int) -> int:
    """The option min_ranks of a Supplier of that number of ranks."""
    if min_ranks is None:
        return ranks
    if whole_number("min_ranks", min_ranks, 1) > ranks:
        raise ConfigError(f"min_ranks is {min_ranks}, and ranks is {ranks}: it must be at most as large")
    return int(min_ranks)


def check_checkpoints(
    folder: Any, every: Any, keep: Any, resume: Any, resume_from: Any, results: Any, backend: Any
) -> tuple[str | None, float | None, str | None]:
    """The options for checkpoints: folders as texts, and seconds. Raises ConfigError."""
    names = []
    for option, given in (("checkpoint_folder", folder), ("resume_from", resume_from)):
        if given is not None and not isinstance(given, (str, os.PathLike)):
            raise ConfigError(f"{option} is {shown(given)}: it must be the path of a folder")
        names.append(None if given is None else os.fspath(given))
    whole_number("keep_checkpoints", keep, 1)
    if resume is not None and resume_from is not None:
        raise ConfigError("set either resume or resume_from: both say where ranks begin")
    if folder is not None and results is not None:
        raise ConfigError(
            "results and checkpoint_folder: rows that ranks wrote before a checkpoint are lost with these ranks: leave "
            "one out. Without checkpoints, ranks that are started again begin at the beginning, with all rows"
        )
    if every is not None and folder is None:
        raise ConfigError("checkpoint_every is for checkpoint_folder: set both, or neither")
    if every is not None and backend is None:
        raise ConfigError(
            "checkpoint_every needs a backend, over which ranks agree on the step: leave checkpoint_every out, and "
            "call data.checkpoint(state) when a checkpoint is due"
        )
    return names[0], None if every is None else duration("checkpoint_every", every), names[1]
