"""Host files in Open MPI's format: `HOST slots=N` a line, `#` begins a comment."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

from supply.errors import SupplierError


def read_host_file(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """(host, slots) of each line, with one slot if the line names no number."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError as error:
        raise SupplierError(f"cannot read the host file {os.fspath(path)}: {error.strerror}") from error
    hosts = []
    for number, line in enumerate(lines, 1):
        host, *words = line.partition("#")[0].split() or [""]
        slots = next((word.removeprefix("slots=") for word in words if word.startswith("slots=")), "1")
        if not slots.isdigit():
            raise SupplierError(f"{os.fspath(path)}:{number}: slots={slots} is not a number")
        if host:
            hosts.append((host, int(slots)))
    return hosts


def write_host_file(path: pathlib.Path, hosts: Mapping[str, Sequence[int]]) -> None:
    """hosts: the ranks of each host."""
    path.write_text("".join(f"{host} slots={len(ranks)}\n" for host, ranks in hosts.items()))
