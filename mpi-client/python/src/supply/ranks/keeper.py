"""The keeper of a rank that mpirun has started: forwards its output, and removes the files when ranks have ended.

mpirun may kill all ranks at any time. A keeper is outside of their sessions, so it remains.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from typing import BinaryIO

from supply.ranks.control import connect
from supply.ranks.messages import KeeperStarted, Stop
from supply.ranks.output import Forwarder
from supply.ranks.run_files import RunFiles
from supply_launch.signals import end_with_parent


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
    keep_results, driver_lives = False, True
    try:
        driver = connect()
        driver.send(KeeperStarted())
        forwarder = Forwarder(driver, rank, streams)
        # It exits if the rank has ended already. The rank's output must still be sent.
        with contextlib.suppress(SystemExit):
            end_with_parent(rank_process, signal.SIGTERM)
            signal.sigwait([signal.SIGTERM])
        # The driver says so before the ranks end.
        message = driver.receive_now()
        keep_results = isinstance(message, Stop) and message.keep_results
        driver_lives = not driver.is_gone
    finally:
        # When the other keepers of this node no longer hold it, all ranks here have ended.
        fcntl.flock(lock, fcntl.LOCK_EX)
        files.remove_of_ranks(keep_results, driver_lives)
    forwarder.finish()
