"""Reads and writes host files, in Open MPI's format: 'HOST slots=N' a line, '#' begins a comment."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Iterable

from .command import Failure


def read(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """The nodes of the file in its order: (host, slots), with one slot if the line names no number."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise Failure(f"cannot read the host file {path}: {error.strerror}") from error
    nodes: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        host, *words = line.partition("#")[0].split() or [""]
        slots = next((word[len("slots=") :] for word in words if word.startswith("slots=")), "1")
        if not re.fullmatch("[0-9]+", slots):
            raise Failure(f"{path}:{number}: slots={slots} is not a number")
        if mpich := re.fullmatch(r"([^:]+):(\d+)", host):
            raise Failure(f"{path}:{number}: {host} is no name of a host: write '{mpich[1]} slots={mpich[2]}'")
        if host in nodes:
            raise Failure(f"{path}:{number}: {host} has a line already: write one line for each host, with slots=n")
        if host:
            nodes[host] = int(slots)
    return list(nodes.items())


def nodes(path: str | os.PathLike[str]) -> list[str]:
    """The names of the nodes, in the order of the file."""
    return [host for host, _ in read(path)]


def text(nodes: Iterable[tuple[str, int]]) -> str:
    """What a host file says: (host, slots) pairs."""
    return "".join(f"{host} slots={slots}\n" for host, slots in nodes)


def write(path: str | os.PathLike[str], nodes: Iterable[tuple[str, int]]) -> None:
    """Writes a host file: (host, slots) pairs."""
    pathlib.Path(path).write_text(text(nodes), encoding="utf-8")
