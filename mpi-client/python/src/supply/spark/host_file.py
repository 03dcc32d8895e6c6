"""Host files in Open MPI's format: `HOST slots=N` a line, `#` begins a comment."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

from supply.errors import RunError


def read_host_file(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """(host, slots) of each host, with one slot if its line names no number. A host has one line."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RunError(f"cannot read the host file {os.fspath(path)}: {error.strerror}") from error
    hosts: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        host, *words = line.partition("#")[0].split() or [""]
        slots = next((word.removeprefix("slots=") for word in words if word.startswith("slots=")), "1")
        if not slots.isdigit():
            raise RunError(f"{os.fspath(path)}:{number}: slots={slots} is not a number")
        if host in hosts:
            raise RunError(
                f"{os.fspath(path)}:{number}: {host} has a line already: write one line for each host, with slots=n"
            )
        if host:
            hosts[host] = int(slots)
    return list(hosts.items())


def write_host_file(path: pathlib.Path, hosts: Mapping[str, Sequence[int]]) -> None:
    """hosts: the ranks of each host."""
    path.write_text("".join(f"{host} slots={len(ranks)}\n" for host, ranks in hosts.items()), encoding="utf-8")
