"""A YARN with nodes of its own on this machine (launch/hadoop), for as long as a benchmark takes."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from engine import paths
from engine.failure import BenchError

HADOOP = paths.ROOT / "launch" / "hadoop"
# Of a node; the machine's memory and cores are not set aside for them.
NODE_MEMORY_MIB = 8192
NODE_CORES = 64


def why_not():
    """Why this machine can have no nodes; nothing where it can."""
    return subprocess.run([HADOOP, "can-have-nodes"], stdout=subprocess.PIPE, text=True).stdout.strip()


class Cluster:
    def __init__(self, nodes):
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        paths.OUTPUT.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hadoop-", dir=paths.OUTPUT))
        self._hadoop(
            "start", "--nodes", str(nodes), "--node-memory", str(NODE_MEMORY_MIB), "--node-cores", str(NODE_CORES)
        )

    def _hadoop(self, command, *arguments):
        done = subprocess.run([HADOOP, command, "--folder", self.folder, *arguments], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BenchError(f"launch/hadoop {command} failed: its message stands above")
        return done.stdout

    def settings(self, executors, cores, memory_overhead):
        """Spark's, for a driver on this machine."""
        return {
            "spark.driver.host": self._hadoop("on", "head", "getent hosts head").split()[0],
            "spark.driver.bindAddress": "0.0.0.0",
            # The nodes see the same file system.
            "spark.yarn.jars": f"local:{paths.spark_home()}/jars/*",
            "spark.executor.extraClassPath": str(paths.jar()),
            "spark.executor.instances": str(executors),
            "spark.executor.cores": str(cores),
            "spark.executor.memory": "1g",
            "spark.executor.memoryOverhead": f"{memory_overhead >> 20}m",
            "spark.locality.wait": "60s",
        }

    def environment(self):
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}

    @contextlib.contextmanager
    def ranks(self, count, ranks_a_node, ring, block, program, *arguments, timeout):
        """
        So many ranks on each of the first `count` nodes, by one mpirun: the options that both sides take, and a function that
        waits for the ranks' end and returns what each has printed as JSON.
        """
        folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        hosts = folder / "hosts"
        hosts.write_text("".join(f"{node} slots={ranks_a_node}\n" for node in self.nodes[:count]), encoding="utf-8")
        subprocess.run(
            [
                paths.ROOT / "launch" / "make-configs",
                "--ring",
                str(ring),
                "--block",
                str(block),
                str(ranks_a_node),
                f"/dev/shm/{folder.name}",
                folder,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        configs = {
            "hosts": str(hosts),
            "mapped_files": str(folder / "mapped-files.conf"),
            "named_pipes": str(folder / "named-pipes.conf"),
        }
        options = [word for name, value in configs.items() for word in (f"--{name.replace('_', '-')}", value)]
        command = [
            paths.ROOT / "launch" / "run-ranks",
            *options,
            "--timeout",
            timeout,
            "--",
            paths.program(program),
            *arguments,
        ]
        # The ranks' lines are long, and mpirun would mix them.
        environment = {**os.environ, "MPIRUN": f"mpirun --output-filename {folder}/output"}
        process = subprocess.Popen(
            [HADOOP, "on", "--folder", self.folder, "head", "exec", *map(str, command)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

        def results():
            if process.wait(timeout) != 0:
                raise BenchError(f"the ranks ended with status {process.returncode}: their message stands above")
            # In the order of their numbers.
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
