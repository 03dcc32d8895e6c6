"""The ranks of a benchmark and their config files."""

import contextlib
import json
import pathlib
import queue
import subprocess
import tempfile
import threading

import spark_supplier.launch.config_files

from engine import machine
from engine.machine import BenchError


@contextlib.contextmanager
def config_files(pairs, ring, block):
    """The two config files of `pairs` pairs as options of both sides, in a folder of this run."""
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        sizes = ["--ring", str(ring), "--block", str(block)]
        command = [machine.ROOT / "launch" / "make-configs", *sizes, str(pairs), folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        names = ("mapped-files", "named-pipes")
        yield {name.replace("-", "_"): str(pathlib.Path(folder, f"{name}.conf")) for name in names}


# Of a process that measures as a rank does, and has no pair.
NO_FILES = {"mapped_files": "", "named_pipes": ""}


class Rank:
    """The process of one rank. It prints what it has measured as JSON."""

    def __init__(self, configs, *command, timeout):
        self.timeout = timeout
        self.process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=spark_supplier.launch.config_files.environment(**configs, timeout=timeout),
        )
        # A rank that measures for long prints more than a pipe holds, so a thread reads at once.
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _line(self):
        """The next line; None at the end."""
        try:
            return self._lines.get(timeout=self.timeout)
        except queue.Empty:
            raise BenchError(f"{self.process.args[0]} has printed nothing for {self.timeout} s") from None

    def ask(self, line):
        """Asks the rank to measure a round."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self._line()
        if line is None:
            self._require_success(ended_early=True)
        return json.loads(line)

    def end(self):
        """Ends the rank's input. Returns its last answer."""
        self.process.stdin.close()
        output = "".join(iter(self._line, None))
        self._require_success()
        return json.loads(output) if output else None

    def _require_success(self, ended_early=False):
        status = self.process.wait(self.timeout)
        if status != 0 or ended_early:
            raise BenchError(f"{self.process.args[0]} ended with status {status}: its message stands above")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def local_ranks(count, configs, program, *arguments, timeout):
    """Starts `count` ranks. A `{}` in `arguments` becomes the local rank."""
    started = []
    try:
        for local_rank in range(count):
            filled = [str(argument).format(local_rank) for argument in arguments]
            started.append(Rank(configs, machine.program(program), *filled, timeout=timeout))
        yield started
    finally:
        for rank in started:
            rank.close()
