"""The process of mpirun: Open MPI's, or MPICH's."""

from __future__ import annotations

import collections
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from supply.ranks.cores import OMP_NUM_THREADS

# How long ranks may take to return when they are asked to, and mpirun to end them.
_GRACE_SECONDS = 3
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
        self._words = [sys.executable, "-m", "supply_launch.signals", str(os.getpid()), *command]
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
