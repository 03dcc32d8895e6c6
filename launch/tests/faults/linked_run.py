"""A run whose ranks connect to it: the Supplier with two executors as a program of its own, and supply-cat."""

import concurrent.futures
import re
import secrets
import socket
import subprocess

import pytest

from places import JAR
from ranks import Rank, one_line
from supplier_program import SupplierProgram
from tally import TALLY
from waiting import wait_until

# Of each wait, in seconds: longer than any pause of a test that must succeed.
TIMEOUT = 60
KEY = secrets.token_hex(16)


class _Served:
    """In place of pairs: the ranks have no files."""

    def __init__(self, ranks, port):
        self.count = ranks
        self.environment = {
            "SUPPLY_CONNECT": f"supply://127.0.0.3:{port}/faults",
            "SUPPLY_KEY": KEY,
            "WORLD_SIZE": str(ranks),
        }

    def options(self):
        return []


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.3", 0))
        return found.getsockname()[1]


class LinkedRun:
    def __init__(self, temporary, database, ranks=2, epochs=60, timeout=TIMEOUT, options=(), tally=TALLY):
        port = _free_port()
        self._tally = tally
        self.pairs, self.database, self.epochs, self.timeout = _Served(ranks, port), database, epochs, timeout
        self._readers = concurrent.futures.ThreadPoolExecutor()
        self.ranks = [self.start_rank(rank) for rank in range(ranks)]
        self._ends = [self._readers.submit(rank.finish) for rank in self.ranks]
        settings = {
            "spark.driver.host": "127.0.0.3",
            "spark.driver.bindAddress": "127.0.0.3",
            "spark.supply.hub.port": port,
            "spark.executor.extraClassPath": JAR,
            "spark.executor.memory": "512m",
            "spark.executor.defaultJavaOptions": f"-XX:+UseSerialGC -Djava.io.tmpdir={temporary}",
            "spark.network.timeout": "10s",
            "spark.network.timeoutInterval": "1s",
            "spark.executor.heartbeatInterval": "2s",
        }
        served = ["--serve", "faults", "--serve-secret", KEY, "--master", "local-cluster[2,2,512]", *options]
        confs = [f"--conf={name}={value}" for name, value in settings.items()]
        environment = {"SPARK_LOCAL_IP": "127.0.0.3", "TMPDIR": str(temporary)}
        self.program = SupplierProgram(self, *served, *confs, environment=environment)

    def start_rank(self, rank):
        return Rank(self.pairs, rank, self.timeout, environment=self.pairs.environment)

    def restart_rank(self, number):
        self.ranks[number] = self.start_rank(number)
        self._ends[number] = self._readers.submit(self.ranks[number].finish)

    def executors(self):
        """The processes of its executors."""
        pgrep = ["pgrep", "--pgroup", str(self.program.process.pid), "--full", "CoarseGrainedExecutorBackend"]
        found = subprocess.run(pgrep, capture_output=True, text=True, check=False)
        return set(map(int, found.stdout.split()))

    def connections(self, number):
        """The local ports of a rank's connections to an executor, with the bytes that it has received."""
        listed = subprocess.run(["ss", "-Htinp", "state", "established"], capture_output=True, text=True, check=True)
        lines = listed.stdout.replace("\n\t", " ").splitlines()
        own = [line for line in lines if f"pid={self.ranks[number].process.pid}," in line]
        received = {line.split()[2].rpartition(":")[2]: re.search(r"bytes_received:(\d+)", line) for line in own}
        return {port: int(found[1]) for port, found in received.items() if found}

    def wait_for_bytes(self, count=100_000):
        """Until each rank has received that number over its connection."""
        for number in range(len(self.ranks)):
            wait_until(lambda: any(received > count for received in self.connections(number).values()))

    def cut(self, number):
        """Takes a rank's connections away from both sides. Returns how many."""
        ports = self.connections(number)
        for port in ports:
            subprocess.run(["ss", "-K", "sport", "=", f":{port}"], capture_output=True, check=False)
        return len(ports)

    def is_running(self):
        return any(rank.process.poll() is None for rank in self.ranks)

    def finish_ranks(self):
        return [end.result() for end in self._ends]

    def ends_well(self):
        """Both sides succeed, and every element has come once in each epoch."""
        statuses = self.finish_ranks()
        assert self.program.finish() == 0, self.program.error
        assert [rank.error for rank in self.ranks] == [""] * len(self.ranks)
        assert statuses == [0] * len(self.ranks)
        assert self._tally.compare(self.database, self.ranks, self.epochs) == (0, 0)

    def errors(self):
        """The failure of each rank."""
        assert self.finish_ranks() == [1] * len(self.ranks)
        return [one_line(rank) for rank in self.ranks]

    def end(self):
        for rank in self.ranks:
            rank.process.kill()
        concurrent.futures.wait(self._ends)
        self.program.end()


@pytest.fixture
def linked(tmp_path, database):
    """A function that starts such a run."""
    started = []

    def start(**options):
        started.append(LinkedRun(tmp_path, database, **options))
        return started[-1]

    yield start
    for run in started:
        run.end()
