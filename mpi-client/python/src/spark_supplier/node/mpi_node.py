"""What each process that mpirun starts does first: it becomes a rank, with a keeper, on a prepared node.

The keeper forwards the rank's output, and removes the files when ranks have ended. mpirun may kill all ranks at any
time. A keeper is outside of their sessions, so it remains.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import signal
import socket
import sys
import threading
from typing import BinaryIO

from spark_supplier.errors import RunError
from spark_supplier.launch.signals import end_with_parent
from spark_supplier.limits import cores_of_rank
from spark_supplier.node.environment import OMP_NUM_THREADS, SPEC_VARIABLE, MpiSpec
from spark_supplier.node.hub import Driver, connect
from spark_supplier.node.messages import Begin, End, KeeperStarted, NodeFailed, OutputStarted, Stop
from spark_supplier.node.output import CallFiles, Forwarder
from spark_supplier.node.run_files import RunFiles

# How soon after an end of a rank it is known why.
_END_SECONDS = 3


def start_keeper(rank: int, files: RunFiles) -> None:
    """Forks the keeper of this process. From now on it gets stdout and stderr."""
    files.make_pair_folder()
    pipes = {name: os.pipe() for name in ("stdout", "stderr")}
    # The keeper waits for this signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    parent = os.getpid()
    if os.fork() == 0:
        try:
            _leave_session([reading for reading, _ in pipes.values()])
            _keep(parent, rank, files, {name: os.fdopen(reading, "rb") for name, (reading, _) in pipes.items()})
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    for descriptor, (reading, writing) in enumerate(pipes.values(), 1):
        os.dup2(writing, descriptor)
        os.close(reading)
        os.close(writing)


def _leave_session(keep: list[int]) -> None:
    """Leaves mpirun's session and streams. mpirun would wait for their end."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    begin = 3
    for descriptor in sorted(keep):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, os.sysconf("SC_OPEN_MAX"))


def _keep(rank_process: int, rank: int, files: RunFiles, streams: dict[str, BinaryIO]) -> None:
    lock = os.open(files.pair_folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    keep_results = False
    try:
        driver = connect()
        driver.send(KeeperStarted())
        output = connect(for_output=True)
        output.send(OutputStarted())
        forwarder = Forwarder(output, rank, streams)
        # The driver wants the end, or is gone.
        ends = threading.Event()
        if not files.kinds:
            threading.Thread(target=_follow_calls, args=(driver, output, forwarder, ends), daemon=True).start()
        # It exits if the rank has ended already. The rank's output must still be sent.
        with contextlib.suppress(SystemExit):
            end_with_parent(rank_process, signal.SIGTERM)
            signal.sigwait([signal.SIGTERM])
        # What its function has started, and not ended. mpirun makes a process group of each rank.
        with contextlib.suppress(OSError):
            os.killpg(rank_process, signal.SIGTERM)
        if files.kinds:
            # The driver says so before the ranks end.
            message = driver.receive_now()
            keep_results = isinstance(message, Stop) and message.keep_results
        else:
            ends.wait(_END_SECONDS)
    finally:
        # When the other keepers of this node no longer hold it, all ranks here have ended.
        fcntl.flock(lock, fcntl.LOCK_EX)
        files.remove_with_calls(keep_results)
    forwarder.finish()


def _follow_calls(driver: Driver, output: Driver, forwarder: Forwarder, ends: threading.Event) -> None:
    """The calls of the keeper's rank. The keeper of local rank 0 has the files of the calls."""
    ranks = int(os.environ["LOCAL_WORLD_SIZE"]) if os.environ["LOCAL_RANK"] == "0" else 0
    files = CallFiles(driver, output, ranks, os.environ["SUPPLY_HOST"])
    while isinstance(message := driver.receive(), (Begin, End)):
        try:
            files.take(message, forwarder.flush)
        except RunError as error:
            driver.send(NodeFailed(str(error)))
    ends.set()


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
    del os.environ[SPEC_VARIABLE]
    host = _host_of(spec.spark_hosts)
    os.environ.update({**_of_torchrun(), "SUPPLY_HOST": host, "SUPPLY_PARENT": str(os.getppid())})
    if host in spec.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = spec.gpus[host]
    os.environ.setdefault(OMP_NUM_THREADS, str(cores_of_rank(int(os.environ["LOCAL_WORLD_SIZE"]), os.getppid())))
    try:
        start_keeper(int(os.environ["RANK"]), spec.files)
        spec.versions.check(host)
        if spec.files.kinds and os.environ["LOCAL_RANK"] == "0":
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
        if _is_same(host.lower(), name.lower()) or any(map(_is_own, addresses))
    )
    return next(own, name)


def _is_same(one: str, other: str) -> bool:
    """Two names with domains are two hosts if they differ."""
    is_short_form = ("." not in one) != ("." not in other) and one.partition(".")[0] == other.partition(".")[0]
    return one == other or is_short_form


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
    found = {}
    for name, *others in _VARIABLES:
        value = next((os.environ[other] for other in others if other in os.environ), None)
        if value is None:
            sys.exit(f"supply: {' or '.join(others)} is not set: is MPIRUN the mpirun of Open MPI or MPICH?")
        found[name] = value
    return found
