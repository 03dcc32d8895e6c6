"""launcher="mpirun": the driver starts the ranks by mpirun, for programs of MPI."""

from __future__ import annotations

import collections
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from spark_supplier.driver import failures
from spark_supplier.driver.failures import Cause, Priority
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.launcher import Launcher
from spark_supplier.driver.placement import wait_for_slots
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import SparkJobs
from spark_supplier.driver.turns import Needs
from spark_supplier.errors import RunError
from spark_supplier.launch import mpi, signals
from spark_supplier.node.environment import OMP_NUM_THREADS, PYTHON_PATH, MpiSpec, python_path
from spark_supplier.node.messages import Failure, KeeperStarted, RankEnded, RankStarted, Result, Stop
from spark_supplier.node.run_files import RunFiles, launch_errors

# How long ranks may take to return when they are asked to, in a call and between calls, and mpirun to end them.
_GRACE_SECONDS = 3
_IDLE_GRACE_SECONDS = 30
_END_SECONDS = 10
# mpirun says why it fails in at most this number of lines.
_LINES = 40


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


class Mpirun:
    """command: mpirun, with what each rank runs. environment: for the ranks.

    post: gets MpirunEnded, on another thread.
    """

    def __init__(self, command: list[str], environment: dict[str, str], post: Callable[[Any], None]) -> None:
        self._words = [sys.executable, "-m", "spark_supplier.launch.signals", str(os.getpid()), *command]
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

    def stop(self, grace: float) -> None:
        """Begins to end it, in that many seconds. mpirun ends its ranks, and removes its own files."""
        threading.Thread(target=self._end, args=(grace,), name="supply: end mpirun", daemon=True).start()

    def _end(self, grace: float) -> None:
        for seconds, end in ((grace, self._process.terminate), (_END_SECONDS, self._process.kill)):
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


class MpirunLauncher(Launcher):
    """mpirun places the ranks, and each rank says where it is.

    server: the command of supply-server that each rank becomes; (): it runs the function of Supplier.run.
    """

    def __init__(
        self, ranks: int, host_file: str | os.PathLike[str] | None, server: Sequence[str] = (), share: int = 1
    ) -> None:
        super().__init__(ranks, share)
        self._server = server
        with launch_errors():
            self._mpi = mpi.Launcher()
            # Its default is one rank for each core. In the allocation of a job of Slurm, that says how many.
            is_alone = host_file is None and "SLURM_JOB_ID" not in os.environ
            self._command = self._mpi.command(ranks, host_file, oversubscribe=is_alone)
        self._slot_hosts: list[str] = []
        self._spark_hosts: dict[str, list[str]] = {}
        self._mpirun: Mpirun | None = None
        self._keepers: list[Peer] = []
        self._started: dict[int, tuple[Peer, RankStarted]] = {}
        self._returned: set[int] = set()
        self._raised: set[int] = set()
        # Ranks that ended without a result, in the order of their ends.
        self._ended: list[int] = []
        self._mpirun_end: MpirunEnded | None = None

    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        self._slot_hosts = wait_for_slots(session, self._ranks, tasks_per_rank, timeout, option, self._share)
        # By which each node can tell whether it is one of the hosts. Names are looked up here only.
        self._spark_hosts = session.ask("addresses", hosts=self._slot_hosts)
        self._gpus = {host: ",".join(addresses) for host, addresses in session.slots().gpus.items()}
        if session.is_local:
            # Spark's name of this machine may be an address that it had before.
            self._spark_hosts.setdefault(platform.node(), [])
        return self._ranks

    def use(self, gpus: dict[str, str]) -> None:
        # reserve() has found them: all that Spark has.
        pass

    def needs(self, tasks_per_rank: int) -> Needs:
        # mpirun places the ranks, and any host may get them all.
        slots = self.slots(tasks_per_rank)
        return Needs({}, dict.fromkeys(self._slot_hosts, slots) if slots else {}, dict.fromkeys(self._slot_hosts, -1))

    def slots(self, tasks_per_rank: int) -> int:
        return self._ranks // self._share * tasks_per_rank

    def start(
        self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs | None, post: Callable[[Any], None]
    ) -> None:
        of_python = {PYTHON_PATH: python_path()}
        gpus = {} if "CUDA_VISIBLE_DEVICES" in environment else self._gpus
        of_run = MpiSpec(files, self._spark_hosts, gpus).environment()
        program = [sys.executable, "-u", "-m", "spark_supplier.node.mpi_rank", *self._server]
        # If ranks or mpirun are killed, Open MPI leaves its files: they go with this folder.
        of_mpi = mpi.Launcher.temporary_files_in(files.pair_folder, files.pair_folder)
        of_ranks = {**of_mpi, **of_python, **environment, **of_run}
        self._mpirun = Mpirun([*self._command, *self._mpi.exports(of_ranks), *program], of_ranks, post)

    def _handle(self, peer: Peer | None, message: Any) -> Cause | None:
        if isinstance(message, KeeperStarted) and peer is not None:
            self._keepers.append(peer)
        elif isinstance(message, RankStarted) and peer is not None:
            self._started[message.rank] = peer, message
            # It is ready for a call.
            self._returned.discard(message.rank)
        elif isinstance(message, Result):
            self._returned.add(message.rank)
        elif isinstance(message, Failure):
            self._raised.add(message.rank)
        elif isinstance(message, MpirunEnded):
            self._mpirun_end = message
            return self._of_mpirun(message)
        elif message is None:
            self._keepers = [keeper for keeper in self._keepers if keeper is not peer]
            ended = (rank for rank, (of_rank, _) in self._started.items() if of_rank is peer)
            self._ended += (rank for rank in ended if rank not in self._returned)
            if self._mpirun_end is not None and self._mpirun_end.status == 0:
                return self._of_mpirun(self._mpirun_end)
        return None

    def _of_mpirun(self, ended: MpirunEnded) -> Cause | None:
        """mpirun ends all ranks when one has failed, so the first one is the cause."""
        if self._is_stopping or len(self._returned) == self._ranks:
            return None
        if ended.status < 0:
            return Cause(Priority.PROCESS, RunError(f"mpirun was killed by {signals.name(-ended.status)}"))
        if ended.status == 0 and self._started.keys() - self._returned - set(self._ended):
            # The driver may still be reading their results.
            return None
        if not self._ended:
            return Cause(Priority.PROCESS, RunError(f"mpirun failed with status {ended.status}: {ended.text}"))
        rank = self._ended[0]
        if rank in self._raised:
            return None
        return failures.of_process(RankEnded(rank, self._started[rank][1].host, ended.rank_status, False))

    @property
    def hosts(self) -> dict[str, list[int]] | None:
        if len(self._started) < self._ranks:
            return None
        hosts: dict[str, list[int]] = {}
        for rank in range(self._ranks):
            hosts.setdefault(self._started[rank][1].host, []).append(rank)
        for host, ranks in hosts.items():
            if host not in self._spark_hosts:
                raise RunError(
                    f"mpirun has started rank {ranks[0]} on {host}, but Spark's executors are on "
                    f"{', '.join(self._spark_hosts)}: give mpirun these hosts (host_file=)"
                )
            if ranks[-1] - ranks[0] >= len(ranks):
                raise RunError(
                    f"mpirun has placed the ranks {', '.join(map(str, ranks))} on {host}: the ranks of a node must "
                    "have consecutive numbers (--map-by slot in MPIRUN)"
                )
        return hosts

    @property
    def keepers(self) -> Sequence[Peer]:
        return list(self._keepers)

    @property
    def keepers_in_all(self) -> int:
        return self._ranks

    @property
    def is_explaining(self) -> bool:  # type: ignore[override]
        return bool(self._ended) and self._ended[0] not in self._raised and self._mpirun_end is None

    @property
    def process(self) -> int | None:
        """mpirun's process id, if it has started."""
        return None if self._mpirun is None else self._mpirun.process

    @property
    def has_ended(self) -> bool:
        return (self._mpirun is None or self._mpirun_end is not None) and super().has_ended

    def stop(self, stop: Stop) -> None:
        self._is_stopping = True
        # A keeper removes the files when its rank has ended.
        for peer in [*self._keepers, *(rank for rank, _ in self._started.values())]:
            peer.send(stop)
        if self._mpirun is not None:
            self._mpirun.stop(_IDLE_GRACE_SECONDS if stop.idle else _GRACE_SECONDS)
