"""What each process that mpirun starts does first: it becomes a rank, with a keeper, on a prepared node."""

from __future__ import annotations

import os
import platform
import socket
import sys

from supply.errors import RunError
from supply.ranks.control import connect
from supply.ranks.cores import OMP_NUM_THREADS, cores_of_rank
from supply.ranks.keeper import start_keeper
from supply.ranks.messages import NodeFailed
from supply.ranks.mpi_spec import VARIABLE, MpiSpec

# torchrun's name of a variable, Open MPI's, and MPICH's.
_VARIABLES = (
    ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
)


def prepare_rank() -> bool:
    """Sets torchrun's variables, SUPPLY_HOST and SUPPLY_PARENT. False: the driver knows why this node has no ranks."""
    spec = MpiSpec.of(dict(os.environ))
    del os.environ[VARIABLE]
    host = _host_of(spec.spark_hosts)
    os.environ.update({**_of_torchrun(), "SUPPLY_HOST": host, "SUPPLY_PARENT": str(os.getppid())})
    if host in spec.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = spec.gpus[host]
    os.environ.setdefault(OMP_NUM_THREADS, str(cores_of_rank(int(os.environ["LOCAL_WORLD_SIZE"]), os.getppid())))
    try:
        start_keeper(int(os.environ["RANK"]), spec.files)
        spec.versions.check(host)
        if os.environ["LOCAL_RANK"] == "0":
            # The other ranks of this node read the files when all ranks have started.
            spec.files.write_config()
            spec.files.require_space(int(os.environ["LOCAL_WORLD_SIZE"]), host)
    except RunError as error:
        connect().send(NodeFailed(str(error)))
        return False
    return True


def _host_of(spark_hosts: dict[str, list[str]]) -> str:
    """This machine, as Spark names it. Looks no name up: with many nodes, slow name servers would hold every rank."""
    name = platform.node()
    own = (
        host
        for host, addresses in spark_hosts.items()
        if host == name or _is_short_form(host, name) or any(map(_is_own, addresses))
    )
    return next(own, name)


def _is_short_form(one: str, other: str) -> bool:
    """Two names with domains are two hosts if they differ."""
    return ("." not in one) != ("." not in other) and one.partition(".")[0] == other.partition(".")[0]


def _is_own(address: str) -> bool:
    """Whether this machine has it: a socket can only listen on an address of its own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as own:
            own.bind((address, 0))
    except OSError:
        return False
    return True


def _of_torchrun() -> dict[str, str]:
    """torchrun's variables, from those of the launcher."""
    found = {}
    for name, *others in _VARIABLES:
        value = next((os.environ[other] for other in others if other in os.environ), None)
        if value is None:
            sys.exit(f"supply: {' or '.join(others)} is not set: is MPIRUN the mpirun of Open MPI or MPICH?")
        found[name] = value
    return found
