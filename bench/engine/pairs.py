"""The ranks of a benchmark and their config files, on this machine or on the nodes of a cluster."""

import contextlib
import json
import os
import pathlib
import queue
import shutil
import subprocess
import tempfile
import threading

import spark_supplier.launch.config_files

from engine import machine
from engine.machine import BenchError


@contextlib.contextmanager
def config_files(pairs, ring, block):
    """The two config files of `pairs` pairs, in a folder of this run."""
    with tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as folder:
        yield _make_configs(pairs, ring, block, folder)


def _make_configs(pairs, ring, block, pair_folder, config_folder=None):
    """Runs launch/make-configs. Returns the two files as options of both sides."""
    sizes = ["--ring", str(ring), "--block", str(block)]
    folders = [pair_folder, config_folder or pair_folder]
    command = [machine.ROOT / "launch" / "make-configs", *sizes, str(pairs), *folders]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {
        name.replace("-", "_"): str(pathlib.Path(folders[1], f"{name}.conf"))
        for name in ("mapped-files", "named-pipes")
    }


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


HADOOP = machine.ROOT / "launch" / "dev" / "mini-cluster"
# Of tc's token bucket: a burst that lasts until the kernel's next tick, at 10 Gbit/s.
LIMIT = "burst 4mb latency 100ms"
# Of a node. YARN only counts them; nothing is reserved.
NODE_MEMORY_MIB = 8192
NODE_CORES = 64


def why_not():
    """Why this machine cannot have nodes; empty if it can."""
    return subprocess.run([HADOOP, "can-have-nodes"], stdout=subprocess.PIPE, text=True).stdout.strip()


class Cluster:
    def __init__(self, nodes):
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        machine.OUTPUT.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hadoop-", dir=machine.OUTPUT))
        try:
            self._hadoop(
                "start", "--nodes", str(nodes), "--node-memory", str(NODE_MEMORY_MIB), "--node-cores", str(NODE_CORES)
            )
        except BaseException:
            self.close()
            raise

    def _hadoop(self, command, *arguments):
        done = subprocess.run([HADOOP, command, "--folder", self.folder, *arguments], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BenchError(f"launch/dev/mini-cluster {command} failed: its message stands above")
        return done.stdout

    def settings(self, executors, cores, memory_overhead):
        """Spark's settings, for a driver on this machine."""
        return {
            "spark.driver.host": self._hadoop("on", "head", "getent hosts head").split()[0],
            "spark.driver.bindAddress": "0.0.0.0",
            # All nodes see the same file system.
            "spark.yarn.jars": f"local:{machine.spark().home}/jars/*",
            "spark.executor.extraClassPath": str(machine.spark().jar),
            "spark.executor.instances": str(executors),
            "spark.executor.cores": str(cores),
            "spark.executor.memory": "1g",
            "spark.executor.memoryOverhead": f"{memory_overhead >> 20}m",
            "spark.locality.wait": "60s",
        }

    def environment(self):
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}

    def files(self, count, ranks_a_node, ring, block):
        """The files of a run on the first `count` nodes: as words of run-ranks, and as the options of both sides."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        hosts = folder / "hosts"
        hosts.write_text("".join(f"{node} slots={ranks_a_node}\n" for node in self.nodes[:count]), encoding="utf-8")
        files = _make_configs(ranks_a_node, ring, block, f"/dev/shm/{folder.name}", folder)
        configs = {"hosts": str(hosts), **files}
        return [word for name, value in configs.items() for word in (f"--{name.replace('_', '-')}", value)], configs

    def on_head(self, *command):
        """The command that runs a command beside the nodes."""
        return [HADOOP, "on", "--folder", str(self.folder), "head", "exec", *map(str, command)]

    def limit(self, rate):
        """Limits what each node sends to a rate of tc (10gbit)."""
        for node in self.nodes:
            self._hadoop("on", node, f"tc qdisc replace dev node root tbf rate {rate} {LIMIT}")

    @contextlib.contextmanager
    def ranks(self, count, ranks_a_node, ring, block, program, *arguments, timeout):
        """
        Runs `ranks_a_node` ranks on each of the first `count` nodes by one mpirun. Yields the options of both sides
        and a function that waits for the ranks and returns what each has printed as JSON.
        """
        options, configs = self.files(count, ranks_a_node, ring, block)
        folder = pathlib.Path(configs["hosts"]).parent
        command = [machine.ROOT / "launch" / "run-ranks", *options, "--timeout", timeout]
        command += ["--", machine.program(program), *arguments]
        # mpirun would mix the ranks' long lines.
        variables = {**os.environ, "MPIRUN": f"mpirun --output-filename {folder}/output"}
        process = subprocess.Popen(
            self.on_head(*command), env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

        def results():
            if process.wait(timeout) != 0:
                raise BenchError(f"the ranks ended with status {process.returncode}: their message stands above")
            # By rank.
            outputs = sorted(folder.glob("output/*/rank.*/stdout"), key=lambda file: int(file.parent.suffix[1:]))
            return [json.loads(file.read_text(encoding="utf-8")) for file in outputs]

        try:
            yield configs, results
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def close(self):
        subprocess.run([HADOOP, "stop", "--folder", self.folder], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
