"""Ranks that run supply-server, started by the driver through mpirun."""

from __future__ import annotations

import collections
import logging
import os
import threading
from typing import Any

from spark_supplier.driver.failures import Cause
from spark_supplier.driver.hub import Hub, Peer
from spark_supplier.driver.mpirun_launcher import MpirunEnded, MpirunLauncher
from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RankError, RunError, RunTimeoutError
from spark_supplier.node.messages import Output, Stop
from spark_supplier.node.run_files import RunFiles

_END_SECONDS = 15
# mpirun says why a rank has ended when it has ended the others.
_LAST_WORDS_SECONDS = 5
_LINES = 40

_log = logging.getLogger("spark_supplier")


class Server:
    """program: supply-server, at the same path on every node. environment: for it. timeout: seconds of each wait.

    Raises RunError if the ranks do not start, or if one is on a node without an executor.
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
        self._launcher = MpirunLauncher(ranks, host_file, [program])
        self._launcher.reserve(session, 1, timeout, "timeout")
        self._files = files
        self._causes: list[Cause] = []
        self._lines: collections.deque[str] = collections.deque(maxlen=_LINES)
        self._changed = threading.Condition()
        self._hub = Hub(session, files.name, self._handle)
        try:
            files.write_config()
            with self._changed:
                self._launcher.start(files, {**environment, **self._hub.environment()}, None, self._post)
            self._place(session, ranks, timeout)
        except BaseException:
            self.stop()
            raise

    @property
    def host_file(self) -> str | None:
        """Where the ranks are, for Spark. None: on this machine, as Spark is."""
        return str(self._files.host_file) if self._files.host_file.exists() else None

    def check(self, seconds: float = 0) -> None:
        """Raises RunError if the ranks have ended, or end within this time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._causes, seconds):
                return
        error = self._causes[0].error
        # Why a rank has ended is in its output.
        text = self._output() if isinstance(error, RankError) else ""
        raise RunError(f"supply-server did not start: {text or error}") from error

    def last_words(self) -> str:
        """What the ranks and mpirun have printed last, if they have ended."""
        output = self._output()
        return f"\nThe last output of the ranks and mpirun:\n{output}" if output else ""

    def stop(self) -> None:
        """Ends the ranks. Nothing is left of them but the rows that Spark may still read."""
        with self._changed:
            self._launcher.stop(Stop(keep_results=True))
            ended = self._changed.wait_for(lambda: self._launcher.has_ended, _END_SECONDS)
        self._hub.close()
        self._files.remove(keep_results=True)
        if not ended:
            # An error would hide the one for which the ranks are ended.
            _log.error("mpirun, process %s, did not end within %d s: end it", self._launcher.process, _END_SECONDS)

    def _place(self, session: Session, ranks: int, timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._launcher.hosts is not None or self._causes, timeout)
            hosts = self._launcher.hosts
        self.check()
        if hosts is None:
            raise RunTimeoutError(
                f"not all of the {ranks} ranks have started within {timeout:g} s: if their nodes cannot connect to the "
                f"driver at {self._hub.host}, set spark.driver.host"
            )
        if not session.is_local:
            self._files.write_hosts(hosts)

    def _output(self) -> str:
        with self._changed:
            if not self._changed.wait_for(lambda: self._launcher.has_ended, _LAST_WORDS_SECONDS):
                return ""
            return "\n".join(self._lines)

    def _post(self, message: Any) -> None:
        self._handle(None, message)

    def _handle(self, peer: Peer | None, message: Any) -> None:
        """On any thread."""
        with self._changed:
            if isinstance(message, Output):
                self._lines.append(f"[rank {message.rank}] {message.line}")
            if isinstance(message, MpirunEnded):
                self._lines.extend(message.text.splitlines())
            cause = self._launcher.handle(peer, message)
            if cause is not None:
                self._causes.append(cause)
            self._changed.notify_all()
