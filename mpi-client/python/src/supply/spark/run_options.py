"""Checks of the options of Supplier.run that do not depend on the DataFrame, before anything starts."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

from supply.arguments import one_of, shown, whole_number
from supply.errors import ConfigError
from supply.sizes import optional_size

SHUFFLES = ("none", "partitions", "elements", "all")


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
    epochs: Any, seed: Any, shuffle: Any, shuffle_buffer: Any, exchange_fraction: Any, block_elements: Any
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


def check_resident(resident: Any, folder: Any, quota: Any, keep: Any, shuffle: str) -> None:
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
    if shuffle == "elements" and (resident or folder is not None):
        name = "resident" if resident else "resident_folder"
        raise ConfigError(
            f"{name} repeats the first epoch's blocks, so shuffle='elements' cannot be: use 'partitions' or 'none'"
        )
