"""The ranks of a benchmark and their config files."""

import contextlib
import json
import pathlib
import subprocess
import tempfile

from spark_supplier.launch import config_files as files
from spark_supplier.launch.mpi import Launcher

from engine import machine
from engine.machine import BenchError

# From SIGTERM until a rank, or mpirun and its ranks, have ended.
END_SECONDS = 10


@contextlib.contextmanager
def config_files(pairs, ring, block):
    """The two config files of `pairs` pairs as options of both sides, in a folder of this run."""
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        sizes = ["--ring", str(ring), "--block", str(block)]
        command = [machine.ROOT / "launch" / "make-configs", *sizes, str(pairs), folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        names = ("mapped-files", "named-pipes")
        yield {name.replace("-", "_"): str(pathlib.Path(folder, f"{name}.conf")) for name in names}


class Rank:
    """The process of a rank, or the mpirun of ranks, which rank 0 speaks for. It prints lines of JSON."""

    def __init__(self, configs, *command, timeout):
        self._timeout = timeout
        self._process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=files.environment(**configs, timeout=timeout),
        )
        self._name = self._process.args[0]

    def answer(self):
        """The next line."""
        line = machine.read_line(self._process, self._process.stdout, self._timeout, self._name)
        if not line:
            self._fail()
        return json.loads(line)

    def end(self):
        """The last line, when the process has ended."""
        answer = self.answer()
        if self._process.wait(self._timeout) != 0:
            self._fail()
        return answer

    def _fail(self):
        status = self._process.wait(self._timeout)
        raise BenchError(f"{self._name} ended with status {status}: its message stands above")

    def close(self):
        # A killed mpirun would leave its ranks.
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def started(configs, commands, timeout):
    """Yields a Rank for each command."""
    with contextlib.ExitStack() as stack:
        ranks = []
        for command in commands:
            ranks.append(Rank(configs, *command, timeout=timeout))
            stack.callback(ranks[-1].close)
        yield ranks


def beside_spark(count):
    """The commands of the cycle's ranks."""
    return [[machine.program("bench-rank"), rank] for rank in range(count)]


def sharing(count):
    """The same of ranks that read one ring."""
    return [["env", f"SUPPLY_SHARE={count}", *command] for command in beside_spark(count)]


def exchanging(count, exchange):
    """One command of ranks that exchange rows."""
    return [[*Launcher().command(count), machine.program("bench-exchange"), exchange]]
