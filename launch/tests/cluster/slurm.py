"""Slurm on the nodes of a cluster: its daemons, each a process of its own, without systemd and accounting."""

import os
import pathlib
import re
import shutil
import socket
import subprocess

from waiting import wait_until

DAEMONS = ("munged", "slurmctld", "slurmd")
CORES = 8

CONFIGURATION = """
ClusterName=supply
SlurmctldHost=head
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName={nodes} CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing():
    """The programs of Slurm that this machine lacks."""
    # Debian installs daemons in /usr/sbin, which is not on an ordinary user's PATH.
    path = os.environ["PATH"] + ":/usr/sbin"
    return [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=path)]


def _free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]


class Slurm:
    def __init__(self, cluster, folder):
        self._cluster = cluster
        self._folder = pathlib.Path(folder)
        self._processes = {}
        # munged requires that no other user can enter its folder.
        self._folder.chmod(0o700)
        self.configuration = self._folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(folder=folder, port=_free_port(), nodes=",".join(cluster.NODES), cores=CORES)
        )
        key = self._folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _start_all(self):
        files = [f"--{what}-file={self._folder}/munge.{what}" for what in ("key", "pid", "seed", "log")]
        # The nodes use the same socket: they have this machine's files.
        self._start("head", "munged", "--foreground", "--force", f"--socket={self._folder}/munge.socket", *files)
        wait_until((self._folder / "munge.socket").exists)
        self._start("head", "slurmctld", "-D", "-c", "-f", self.configuration)
        for node in self._cluster.NODES:
            self._start(node, "slurmd", "-D", "-f", self.configuration)
        wait_until(lambda: self("sinfo", "-h", "-o", "%T").split() == ["idle"])

    def _start(self, node, daemon, *arguments):
        log = self._folder / f"{node}-{daemon}.log"
        with open(log, "w") as file:
            self._processes[node, daemon] = subprocess.Popen(
                self._cluster.on(node, "exec", f"/usr/sbin/{daemon}", *map(str, arguments)),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def __call__(self, command, *arguments):
        """Runs one of Slurm's commands on the head. Returns its stdout."""
        words = [f"SLURM_CONF={self.configuration}", command, *map(str, arguments)]
        return self._cluster("on", "head", *words, check=False).stdout

    def submit(self, folder, mark, *command, nodes=2, ranks_a_node=2):
        """
        Submits a job, and returns its number. The job writes into folder/output, has its temporary files in
        folder/temporary, and its processes have the mark.
        """
        (folder / "temporary").mkdir()
        size = [f"--nodes={nodes}", f"--ntasks-per-node={ranks_a_node}", "--time=10"]
        places = [f"--chdir={folder}", f"--output={folder}/output", f"--export=ALL,{mark},TMPDIR={folder}/temporary"]
        return int(self("sbatch", "--parsable", *size, *places, *command))

    def state(self, job):
        """As PENDING, RUNNING, COMPLETED or FAILED."""
        return self._field(job, "JobState")

    def exit_status(self, job):
        return int(self._field(job, "ExitCode").split(":")[0])

    def _field(self, job, name):
        return re.search(f" {name}=([^ ]*)", self("scontrol", "-o", "show", "job", job)).group(1)

    def ended(self, job):
        """Whether no process of the job runs any more."""
        return self.state(job) not in ("PENDING", "RUNNING", "COMPLETING")

    def stop(self):
        for (node, daemon), process in reversed(self._processes.items()):
            if node == "head":
                process.terminate()
            else:
                self._cluster.signal(node, "TERM", f"/usr/sbin/{daemon}")
        for process in self._processes.values():
            process.wait(timeout=30)
