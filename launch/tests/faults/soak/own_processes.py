"""The processes that the soak has started, directly or not."""

import contextlib
import os
import pathlib
import signal
import time

from processes import Mark

_END_SECONDS = 30


class OwnProcesses:
    """Every process that is started from now on has the mark."""

    def __init__(self):
        self._mark = Mark()
        os.environ[self._mark.name] = self._mark.value

    def are_there(self, process):
        """Whether this is one of them. Its number may belong to another process after its end."""
        return bool(process) and self._mark.is_on(process)

    def named(self, word):
        """Those whose program or arguments have the word."""
        return [process for process in self._mark.processes() if word in _command(process)]

    def running(self, program):
        """Those that run this program themselves."""
        return [process for process in self._mark.processes() if _program(process) == program]

    def check_left(self, cluster):
        """Waits until only Spark is there. Otherwise kills the others and returns their commands."""
        end = time.monotonic() + _END_SECONDS
        while (left := self._others(cluster)) and time.monotonic() < end:
            time.sleep(0.2)
        return self._kill(left)

    def check_end(self):
        """Waits until no process is there. Otherwise kills it and returns its command."""
        end = time.monotonic() + _END_SECONDS
        while (left := self._mark.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        return self._kill(left)

    def _others(self, cluster):
        of_spark = {os.getpid(), cluster.driver()} | cluster.executors()
        # Executors keep processes of Python for later tasks.
        return [
            process
            for process in self._mark.processes()
            if process not in of_spark and "pyspark.daemon" not in _command(process)
        ]

    @staticmethod
    def _kill(left):
        commands = [f"{process} {_command(process)}" for process in left]
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return commands


def _command(process):
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _program(process):
    try:
        return pathlib.Path(f"/proc/{process}/exe").readlink()
    except OSError:
        return None
