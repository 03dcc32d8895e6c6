"""launch/slurm-run: one run in an allocation of Slurm, with a Spark of its own in it."""

import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import config_files, host_file, places, slurm_node
from .command import Failure, Parser, add_config_options, heap_size, split_at_program, temporary_folder
from .processes import Sides, remove_folders
from .spark import Spark, java_options

DESCRIPTION = """\
Starts a standalone Spark in an allocation of Slurm, a master here and a worker on each node, and one run as
launch/supply-run does: the Supplier, and by mpirun the ranks, one for each task of the allocation, on its node
(sbatch --nodes, --ntasks-per-node). Call it in a job of Slurm (configs/slurm-job is one). Ends all of it when one side
has ended, or when the job is cancelled. Nothing is left on any node. The exit status is that of the side that failed
first.

All other options are those of launch/supply-run and of the Supplier (docs/OPTIONS.md), except --ranks, --hosts,
--mapped-files, --named-pipes, --yarn and --master, which come from the allocation, and --serve and --serve-ranks."""
EPILOG = """
Environment:
  TMPDIR               a folder on a disk of each node's own, where Spark spills to (default: /tmp)
  SPARK_DAEMON_MEMORY  heap of the master and of each worker (default: 256m)
  MPIRUN, SPARK_HOME   as in launch/supply-run --help, and its other variables
"""
FROM_ALLOCATION = ("--ranks", "--hosts", "--mapped-files", "--named-pipes", "--yarn", "--master")
NOT_IN_A_JOB = ("--serve", "--serve-ranks")
# Seconds for the master to start, and for the nodes to end what they have.
MASTER_START = 60
ENDING = 25


def main(arguments):
    if arguments[:1] == ["--on-node"]:
        return slurm_node.main(arguments[1:])
    parser = Parser("launch/slurm-run [OPTION]... -- PROGRAM [ARGUMENT]...", DESCRIPTION, EPILOG)
    memory = "heap of the executor of each node, such as 4g (default: 1g)"
    parser.option("--executor-memory", "SIZE", memory, heap_size, default="1g")
    folder = "a folder that every node sees, for the files of this run (default: the present one)"
    parser.option("--folder", "FOLDER", folder, os.path.realpath, default=os.getcwd())
    add_config_options(parser)
    words, program = split_at_program(arguments)
    options, run_options = parser.parse_known_args(words)
    for word in run_options:
        name = word.partition("=")[0]
        if name in FROM_ALLOCATION:
            parser.error(f"{name} comes from the allocation")
        if name in NOT_IN_A_JOB:
            parser.error(f"{name} is not for a job of Slurm: start both sides yourself (docs/SLURM.md)")
    if not program:
        parser.error("no program after '--'")
    job = Job(options, allocation(), Spark())
    try:
        return job.run(run_options, program)
    finally:
        job.clean_up()


def allocation():
    """(host, tasks) of each node, in the order of Slurm's ranks."""
    names = os.environ.get("SLURM_JOB_NODELIST")
    counts = os.environ.get("SLURM_TASKS_PER_NODE")
    if not (os.environ.get("SLURM_JOB_ID") and names and counts):
        raise Failure("this is no job of Slurm: submit it by sbatch (configs/slurm-job), or call it in an salloc")
    if not (shutil.which("scontrol") and shutil.which("srun")):
        raise Failure("no 'scontrol' and 'srun' on PATH: Slurm's commands are needed in the job, too")
    shown = subprocess.run(["scontrol", "show", "hostnames", names], stdout=subprocess.PIPE, text=True, check=False)
    if shown.returncode:
        raise Failure(f"scontrol cannot read SLURM_JOB_NODELIST={names}")
    nodes, tasks = shown.stdout.split(), tasks_of_nodes(counts)
    if len(nodes) != len(tasks):
        raise Failure(f"SLURM_TASKS_PER_NODE={counts} is not for the {len(nodes)} nodes of SLURM_JOB_NODELIST={names}")
    return list(zip(nodes, tasks))


def tasks_of_nodes(text):
    """The tasks of each node: "2(x3),1" is 2, 2, 2 and 1."""
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(tasks) for tasks, nodes in found for _ in range(int(nodes or 1))]


class Job:
    """A run in an allocation, and the Spark that it has there."""

    def __init__(self, options, nodes, spark):
        self._options = options
        self._nodes = nodes
        self._spark = spark
        self._sides = Sides()
        self._workers = None
        self._run = None
        self._folders = []
        # These variables describe this node only.
        self._environment = {**os.environ, "SPARK_HOME": str(spark.home)}
        for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"):
            self._environment.pop(name, None)

    def _make_folder(self, option, parent, number):
        try:
            self._folders.append(pathlib.Path(tempfile.mkdtemp(prefix=f"supply-{number}-", dir=parent)))
        except OSError as error:
            raise Failure(f"{option}: no folder can be made in {parent}") from error
        return self._folders[-1]

    def run(self, run_options, program):
        """Starts all processes and waits until the run has ended. Returns the exit status."""
        options = self._options
        self._work = work = self._make_folder("--folder", options.folder, os.environ["SLURM_JOB_ID"])
        # The other nodes make one of the same name. Spark and mpirun write there, so that it is removed with the run.
        self._scratch = self._make_folder("TMPDIR", temporary_folder(), os.getuid())
        host_file.write(work / "hosts", self._nodes)
        ranks_a_node = max(tasks for _, tasks in self._nodes)
        pairs = f"/dev/shm/supply-{os.getuid()}-{os.environ['SLURM_JOB_ID']}"
        mapped_files, named_pipes = config_files.write(
            ranks_a_node, pairs, work / "configs", options.ring, options.block, options.group
        )
        self._write_spark_settings()
        daemon = {
            **self._environment,
            "SPARK_CONF_DIR": str(work / "daemons"),
            "SPARK_DAEMON_MEMORY": os.environ.get("SPARK_DAEMON_MEMORY", "256m"),
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC {java_options(self._scratch)}",
        }
        master = self._start_master(daemon)
        if not master:
            return 128 + self._sides.signal
        count = len(self._nodes)
        srun: list[object] = ["srun", "--overlap", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"]
        srun += ["--kill-on-bad-exit=1", "--cpu-bind=none", "--mpi=none", "--export=ALL", places.launcher("slurm-run")]
        srun += ["--on-node", master, ranks_a_node, options.executor_memory, mapped_files, named_pipes, self._scratch]
        with open(work / "workers.log", "wb") as log:
            # On the nodes all ends with stdin, also when this command is killed.
            self._workers = self._sides.start(
                "workers", srun, notice=True, stdin=subprocess.PIPE, stderr=log, env=daemon
            )
        command: list[object] = [places.launcher("supply-run"), "--master", master]
        command += ["--conf", f"spark.executor.memory={options.executor_memory}", "--conf"]
        command += [f"spark.executor.defaultJavaOptions={java_options(self._scratch)}", *run_options]
        command += ["--ranks", sum(tasks for _, tasks in self._nodes), "--hosts", work / "hosts"]
        command += ["--mapped-files", mapped_files, "--named-pipes", named_pipes, "--", *program]
        # The nodes themselves remove what killed ranks leave: in a cancelled job no mpirun can.
        environment = {"SPARK_CONF_DIR": str(work / "spark"), "TMPDIR": str(self._scratch), "SUPPLY_NODES_CLEAN": "1"}
        self._run = self._sides.start("run", command, env={**self._environment, **environment})
        ended = self._sides.wait()
        if ended == "signal":
            return 128 + self._sides.signal
        if ended == "run":
            return self._run.status
        if ended == "master":
            raise self._failure("master", "Spark's master ended")
        notices = self._workers.notice.lines() or ["srun cannot start Spark's workers"]
        raise self._failure("workers", notices[0])

    def _write_spark_settings(self):
        """Copies the settings of Spark, with a secret: whoever reaches the master could run programs without it."""
        secret = secrets.token_hex(32)
        mask = os.umask(0o077)
        (self._work / "daemons").mkdir()
        # The site's own files may be links, open to all, or read-only.
        copy = ["cp", "-rL", "--no-preserve=mode", "--", self._spark.configuration, self._work / "spark"]
        if subprocess.run(copy, check=False).returncode:
            raise Failure(f"SPARK_CONF_DIR: {self._spark.configuration} cannot be copied")
        for name in ("daemons", "spark"):
            with open(self._work / name / "spark-defaults.conf", "a", encoding="utf-8") as defaults:
                defaults.write(f"\nspark.authenticate true\nspark.authenticate.secret {secret}\n")
                # Spark's web servers ask nobody who he is.
                defaults.write("spark.master.rest.enabled false\nspark.ui.killEnabled false\n")
        os.umask(mask)

    def _start_master(self, environment):
        """Returns the master's URL, or None if a signal ends this command."""
        command = [self._spark.home / "bin/spark-class", "org.apache.spark.deploy.master.Master"]
        command += ["--host", socket.gethostname(), "--port", "0", "--webui-port", "0"]
        path = self._work / "master.log"
        with open(path, "wb") as log:
            self._sides.start("master", command, stdout=log, stderr=log, env=environment)
        latest = time.monotonic() + MASTER_START
        while time.monotonic() < latest:
            found = re.search(
                r"Starting Spark master at (spark:\S*)", path.read_text(encoding="utf-8", errors="replace")
            )
            if found:
                return found[1]
            ended = self._sides.wait(0.2)
            if ended == "signal":
                return None
            if ended:
                raise self._failure("master", "Spark's master ended")
        raise self._failure("master", f"Spark's master did not start within {MASTER_START} s")

    def _failure(self, side, reason):
        """A failure with the end of a side's log."""
        lines = (self._work / f"{side}.log").read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        return Failure(f"{reason} (the end of its log is above)", log="".join(lines[-5:]))

    def clean_up(self):
        """Ends the run, then what the nodes have, then the master, and removes the folders."""
        if self._run:
            self._run.signal_group(signal.SIGTERM)
            self._sides.wait_until_gone(self._run, ENDING)
        if self._workers:
            self._workers.process.stdin.close()
            self._sides.wait_until_gone(self._workers, ENDING)
        self._sides.end()
        remove_folders(self._folders)
