"""Where ranks that run supply-server are, and their pairs: for MatrixRanks.attach as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from spark_supplier.errors import RunError
from spark_supplier.launch import host_file as host_files
from spark_supplier.node.run_files import launch_errors


@dataclass(frozen=True)
class RankFiles:
    """hosts: the host file; None: all ranks are on this node. results_folder: beginning of names of folders.

    run: at the hub, of ranks that the program has started.
    """

    ranks: int
    mapped_files: str
    named_pipes: str
    hosts: str | None
    results_folder: str
    run: str | None = None


def find_rank_files(
    ranks: int | None,
    mapped_files: str | os.PathLike[str] | None,
    named_pipes: str | os.PathLike[str] | None,
    hosts: str | os.PathLike[str] | None,
    results_folder: str,
    environment: Mapping[str, str] = os.environ,
) -> RankFiles:
    """None: as SUPPLY_RANKS, SUPPLY_MAPPED_FILES, SUPPLY_NAMED_PIPES and SUPPLY_HOSTS say."""
    host_file = hosts or environment.get("SUPPLY_HOSTS")
    number = ranks or environment.get("SUPPLY_RANKS") or (_slots(host_file) if host_file else None)
    files = mapped_files or environment.get("SUPPLY_MAPPED_FILES"), named_pipes or environment.get("SUPPLY_NAMED_PIPES")
    for value, name, variable in (
        (number, "ranks", "SUPPLY_RANKS"),
        (files[0], "mapped_files", "SUPPLY_MAPPED_FILES"),
        (files[1], "named_pipes", "SUPPLY_NAMED_PIPES"),
    ):
        if not value:
            raise RunError(
                f"MatrixRanks.attach does not know the ranks: set {name}= or {variable}, as the ranks have it, or "
                "start the program by launch/supply-run --serve"
            )
    try:
        count = int(number or 0)
    except ValueError:
        raise RunError(f"SUPPLY_RANKS is '{number}', must be a number of ranks") from None
    mapped, pipes = map(_absolute, files)
    return RankFiles(count, mapped, pipes, _absolute(host_file) if host_file else None, results_folder)


def _slots(path: str | os.PathLike[str]) -> int:
    with launch_errors():
        return sum(slots for _, slots in host_files.read(path))


def _absolute(path: str | os.PathLike[str] | None) -> str:
    """Spark's tasks have another working folder."""
    return os.path.abspath(path or "")
