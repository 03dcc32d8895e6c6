"""Reads the allocation of a job of Slurm: its nodes, and how many tasks each has."""

import os
import re
import shutil
import subprocess

from .command import Failure


def read():
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
