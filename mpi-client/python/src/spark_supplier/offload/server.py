"""Ranks that run supply-server, started by the driver through mpirun."""

from __future__ import annotations

import collections
import logging
import os
import threading
from typing import Any

from spark_supplier.driver.failures import Cause
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.mpirun_launcher import MpirunEnded, MpirunLauncher
from spark_supplier.driver.rank_pool import RankPool
from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RankError, RunError, RunTimeoutError
from spark_supplier.node.messages import Stop
from spark_supplier.node.run_files import RunFiles

# mpirun says why a rank has ended when it has ended the others.
_LAST_WORDS_SECONDS = 5
_LINES = 40

_log = logging.getLogger("spark_supplier")


class Server(RankPool):
    """Any thread may use it. What the ranks print is kept for errors.

    program: supply-server, at the same path on every node. environment: for it. timeout: seconds of each wait. Raises
    RunError if the ranks do not start, or if one is on a node without an executor.
    """

    def __init__(
        self,
        session: Session,
        ranks: int,
        host_file: str | os.PathLike[str] | None,
        program: str,
        files: RunFiles,
        environment: dict[str, str],
        timeout: float,
    ) -> None:
        launcher = MpirunLauncher(ranks, host_file, [program])
        launcher.reserve(session, 1, timeout, "timeout")
        super().__init__(session, launcher, ranks, files)
        self._mpirun = launcher
        self._causes: list[Cause] = []
        self._lines: collections.deque[str] = collections.deque(maxlen=_LINES)
        self._handling = threading.Lock()
        try:
            files.write_config()
            self.start(environment, 0)
            self._place(timeout)
        except BaseException:
            self.close()
            raise

    @property
    def host_file(self) -> str | None:
        """Where the ranks are, for Spark. None: on this machine, as Spark is."""
        return str(self.files.host_file) if self.files.host_file.exists() else None

    def check(self, seconds: float = 0) -> None:
        """Raises RunError if the ranks have ended, or end within this time."""
        if not self._await(lambda: bool(self._causes), seconds):
            return
        error = self._causes[0].error
        # Why a rank has ended is in its output.
        text = self._output() if isinstance(error, RankError) else ""
        raise RunError(f"supply-server did not start: {text or error}") from error

    def last_words(self) -> str:
        """What the ranks and mpirun have printed last, if they have ended."""
        output = self._output()
        return f"\nThe last output of the ranks and mpirun:\n{output}" if output else ""

    def close(self) -> None:
        """Ends the ranks. Nothing is left of them but the rows that Spark may still read."""
        try:
            self.stop(Stop(keep_results=True))
            if not self.launcher.has_ended:
                # An error would hide the one for which the ranks are ended.
                _log.error("mpirun, process %s, did not end: end it", self._mpirun.process)
        finally:
            self._ends.close()
            self.files.remove(keep_results=True)

    def _place(self, timeout: float) -> None:
        self._await(lambda: self.launcher.hosts is not None or bool(self._causes), timeout)
        hosts = self.launcher.hosts
        self.check()
        if hosts is None:
            raise RunTimeoutError(
                f"not all of the {self.ranks} ranks have started within {timeout:g} s: if their nodes cannot connect "
                f"to the driver at {self.hub.host}, set spark.driver.host"
            )
        if not self.session.is_local:
            self.files.write_hosts(hosts)

    def _output(self) -> str:
        return "\n".join(self._lines) if self._await(lambda: self.launcher.has_ended, _LAST_WORDS_SECONDS) else ""

    def _print(self, line: str, stream: str) -> None:
        self._lines.append(line)

    def handle(self, peer: Peer | None, message: Any) -> Cause | None:
        with self._handling:
            if isinstance(message, MpirunEnded):
                self._lines.extend(message.text.splitlines())
            cause = super().handle(peer, message)
        if cause is not None:
            self._causes.append(cause)
        return cause
