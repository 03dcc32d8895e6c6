"""A run on the nodes of a cluster: its files, and its ranks, started by launch/run-ranks."""

import collections
import os
import pathlib
import shutil
import subprocess

from places import LAUNCH, SUPPLY_CAT
from ranks import END_OF_PATIENCE


class ClusterRun:
    def __init__(self, cluster, folder, slots, ring="16KiB", block="4KiB", timeout=60):
        """slots: the ranks of each node."""
        self._cluster = cluster
        self.timeout = timeout
        self.slots = slots
        self.ranks = sum(slots)
        self.hosts = folder / "hosts"
        self.hosts.write_text("".join(f"{node} slots={count}\n" for node, count in zip(cluster.NODES, slots) if count))
        self.mapped_files = folder / "configs" / "mapped-files.conf"
        self.named_pipes = folder / "configs" / "named-pipes.conf"
        # Each node has a /dev/shm of its own: the pairs are there, the config files are here.
        self.pairs = pathlib.Path("/dev/shm", folder.name)
        sizes = ["--ring", ring, "--block", block]
        make_configs = [LAUNCH / "make-configs", *sizes, str(max(slots)), self.pairs, self.mapped_files.parent]
        subprocess.run(make_configs, check=True)
        self._output = folder / "output"
        # mpirun mixes the lines of different ranks on its stdout.
        self.environment = {**os.environ, "MPIRUN": f"mpirun --output-filename {self._output}"}
        self.process = None

    def options(self):
        """The options of both sides."""
        return ["--hosts", self.hosts, "--mapped-files", self.mapped_files, "--named-pipes", self.named_pipes]

    def start(self, *arguments, program=SUPPLY_CAT, launch_options=(), **environment):
        """Starts the ranks, all by one mpirun. launch_options: of run-ranks; environment: variables for the ranks."""
        shutil.rmtree(self._output, ignore_errors=True)
        command = [LAUNCH / "run-ranks", *self.options(), "--timeout", self.timeout]
        command += [*launch_options, "--", program, *arguments]
        self.process = subprocess.Popen(
            self._cluster.on("head", *map(str, command)),
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_supplier(self, supplier, lmdb, *options):
        return supplier.start(lmdb, self, *options, ranks=self.ranks, timeout=self.timeout)

    def signal(self, node, signal):
        """Sends a signal to the ranks of a node."""
        self._cluster.signal(node, signal, SUPPLY_CAT.name)

    def pair(self, node, local_rank):
        """A mapped file, as this machine sees it."""
        return self._cluster.memory(node) / self.pairs.name / f"pair-{local_rank}.mapped"

    def finish(self):
        """Returns mpirun's exit status, the ranks' stdout as a multiset of lines, and the lines of their stderr."""
        _, error = self.process.communicate(timeout=2 * END_OF_PATIENCE)
        return (
            self.process.returncode,
            self.lines(),
            [line for line in error.splitlines() if line.startswith("supply-cat: ")],
        )

    def ends_well(self, supplied, expected):
        """Both sides succeed. `supplied`: the result of start_supplier; `expected`: the lines of all ranks."""
        assert self.finish() == (0, expected, [])
        return supplied.result()

    def lines(self):
        return collections.Counter(
            line for file in self._output.glob("*/rank.*/stdout") for line in file.read_text().splitlines()
        )

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for node in self._cluster.NODES:
            left = self._cluster("on", node, f"ls {self.pairs} 2> /dev/null", check=False).stdout
            assert left == "", left
