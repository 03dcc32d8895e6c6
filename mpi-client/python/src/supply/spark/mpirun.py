"""The process of mpirun: Open MPI's, or MPICH's."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from supply.errors import RunError, RunTimeoutError
from supply.ranks.cores import OMP_NUM_THREADS
from supply.spark.host_file import read_host_file

# How long ranks may take to return when they are asked to, and mpirun to end them.
_GRACE_SECONDS = 3
_END_SECONDS = 10
# mpirun says why it fails in at most this number of lines.
_LINES = 40
_VERSION_SECONDS = 30


@dataclass
class MpirunEnded:
    """text: the last lines that it has printed. The output of ranks is not among them."""

    status: int
    text: str

    @property
    def rank_status(self) -> int:
        """The exit status of the rank that failed, as subprocess reports it.

        Open MPI adds 128 to a signal. MPICH returns the signal, and names it in its text. exit(-1) is status 255.
        """
        if re.search(r"\(signal \d+\)$", self.text, re.MULTILINE):
            return -(self.status % 128)
        return 128 - self.status if 128 < self.status < 128 + signal.NSIG else self.status


@dataclass
class Command:
    """words: the start of the command. passes_all: whether ranks get the whole environment."""

    words: list[str]
    passes_all: bool


def command(ranks: int, host_file: str | os.PathLike[str] | None) -> Command:
    """The command in MPIRUN (default: mpirun), with its own options, for this number of ranks.

    Without a host file it starts them in the allocation of Slurm's job if there is one, else on this machine.
    """
    mpirun = os.environ.get("MPIRUN", "").split() or ["mpirun"]
    if not shutil.which(mpirun[0]):
        raise RunError(f"there is no '{mpirun[0]}' on PATH: install Open MPI or MPICH, or set MPIRUN")
    if host_file is not None and not os.access(host_file, os.R_OK):
        raise RunError(f"cannot read the host file {os.fspath(host_file)}")
    version = _version(mpirun[0])
    words = [*mpirun, "-n", str(ranks)]
    # Hydra is the launcher of MPICH.
    if version.startswith(b"HYDRA"):
        hosts = "" if host_file is None else ",".join(f"{host}:{slots}" for host, slots in read_host_file(host_file))
        return Command([*words, *(["-hosts", hosts] if hosts else [])], True)
    words += ["--map-by", "slot", "--bind-to", "none"]
    if host_file is not None:
        words += ["--hostfile", os.fspath(host_file)]
    elif "SLURM_JOB_ID" not in os.environ:
        # Its default is one rank for each core.
        words += ["--oversubscribe"]
    return Command([*words, *([] if os.geteuid() else ["--allow-run-as-root"])], False)


def _version(mpirun: str) -> bytes:
    """What it says about itself. Raises RunError if it is no launcher whose options are known."""
    try:
        version = subprocess.run(
            [mpirun, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_SECONDS, check=False
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise RunTimeoutError(f"'{mpirun} --version' did not end within {_VERSION_SECONDS} s") from error
    if not version.startswith(b"HYDRA") and b"Open MPI" not in version:
        raise RunError(
            f"'{mpirun}' is neither Open MPI's mpirun nor MPICH's mpiexec: name one of them in MPIRUN, or start the "
            "ranks yourself (docs/DATAFRAMES.md, docs/OFFLOAD.md)"
        )
    return version


def files_of_mpi(folder: pathlib.Path) -> dict[str, str]:
    """Environment variables: Open MPI's shared memory and other files lie in the folder, and go with it.

    If ranks or mpirun are killed, it leaves them.
    """
    # The last two are the same setting, of Open MPI 4 and 5.
    names = ("OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
    return dict.fromkeys(names, str(folder))


class Mpirun:
    """program: what each rank runs. environment: for the ranks. post: gets MpirunEnded, on another thread."""

    def __init__(
        self, command: Command, program: list[str], environment: dict[str, str], post: Callable[[Any], None]
    ) -> None:
        exported = [] if command.passes_all else [word for name in environment for word in ("-x", name)]
        tied = [sys.executable, "-m", "supply.ranks.die_with_parent", str(os.getpid())]
        self._words = [*tied, *command.words, *exported, *program]
        # spark-submit sets this one for the driver. That of the user is in `environment`.
        own = {name: value for name, value in os.environ.items() if name != OMP_NUM_THREADS}
        self._environment = {**own, **environment}
        self._post = post
        started: Future[subprocess.Popen[str]] = Future()
        threading.Thread(target=self._run, args=(started,), name="supply: mpirun", daemon=True).start()
        self._process = started.result()

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self) -> None:
        """Begins to end it. mpirun ends its ranks, and removes its own files."""
        threading.Thread(target=self._end, name="supply: end mpirun", daemon=True).start()

    def _end(self) -> None:
        for seconds, end in ((_GRACE_SECONDS, self._process.terminate), (_END_SECONDS, self._process.kill)):
            try:
                self._process.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                end()

    def _run(self, started: Future[subprocess.Popen[str]]) -> None:
        """Starts it, and waits for its end: the kernel would end it with the thread that has started it."""
        try:
            process = subprocess.Popen(
                self._words, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                encoding="utf-8", errors="replace",
                # Ctrl-C is for the driver.
                start_new_session=True,
            )  # fmt: skip
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stdout is not None
        lines = collections.deque((line.rstrip() for line in process.stdout), _LINES)
        status = process.wait()
        # Its frames around the text are of dashes.
        text = "\n".join(line for line in lines if line.strip("-= "))
        self._post(MpirunEnded(status, text or "it has printed nothing"))
