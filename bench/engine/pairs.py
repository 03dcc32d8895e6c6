"""Folders of config files for pairs, and the ranks that open them."""

import contextlib
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading

from engine import paths
from engine.failure import BenchError


@contextlib.contextmanager
def config_files(pairs, ring, block):
    """The two config files of so many pairs, in a folder of this run's own."""
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        command = [
            paths.ROOT / "launch" / "make-configs",
            "--ring",
            str(ring),
            "--block",
            str(block),
            str(pairs),
            folder,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield {
            "mapped_files": str(pathlib.Path(folder, "mapped-files.conf")),
            "named_pipes": str(pathlib.Path(folder, "named-pipes.conf")),
        }


class Rank:
    """A process that is one rank, and prints what it has measured as JSON."""

    def __init__(self, configs, program, *arguments, timeout):
        environment = {
            **os.environ,
            "SUPPLY_MAPPED_FILES": configs["mapped_files"],
            "SUPPLY_NAMED_PIPES": configs["named_pipes"],
            "SUPPLY_TIMEOUT": str(timeout),
        }
        self.timeout = timeout
        self.process = subprocess.Popen(
            [paths.program(program), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        # Read at once: a rank that measures for long prints more than a pipe holds.
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _line(self):
        """The next one; None at the end."""
        try:
            return self._lines.get(timeout=self.timeout)
        except queue.Empty:
            raise BenchError(f"{self.process.args[0]} has printed nothing for {self.timeout} s") from None

    def ask(self, line):
        """Has it measure a round."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self._line()
        if line is None:
            self._require_success(ended_early=True)
        return json.loads(line)

    def end(self):
        """Its last answer."""
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
def ranks(count, configs, program, *arguments, timeout):
    """`arguments` may hold a `{}` for the local rank."""
    started = []
    try:
        for local_rank in range(count):
            filled = [str(argument).format(local_rank) for argument in arguments]
            started.append(Rank(configs, program, *filled, timeout=timeout))
        yield started
    finally:
        for rank in started:
            rank.close()
