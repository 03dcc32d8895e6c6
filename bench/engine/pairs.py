"""Folders of config files for pairs, and the ranks that open them."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

from engine import paths
from engine.failure import BenchError


@contextlib.contextmanager
def config_files(pairs, ring, block):
    """The two config files of so many pairs, in a folder of this run's own."""
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        command = [paths.ROOT / "launch" / "make-configs", "--ring", str(ring), "--block", str(block), str(pairs), folder]
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
        self.process = subprocess.Popen([paths.program(program), *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, line):
        """Has it measure a round."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"{self.process.args[0]} ended with status {self.process.wait(self.timeout)}: its message stands above")
        return json.loads(line)

    def end(self):
        """Its last answer."""
        output, _ = self.process.communicate(timeout=self.timeout)
        if self.process.returncode != 0:
            raise BenchError(f"{self.process.args[0]} ended with status {self.process.returncode}: its message stands above")
        return json.loads(output) if output else None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


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
