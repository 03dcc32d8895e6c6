"""What slurm-run starts on each node of an allocation, by srun: a worker of Spark.

When stdin ends, or Slurm ends the job, this ends the worker and removes what the run has left on the node. If the
worker ends by itself, this writes a line to stdout.
"""

import os
import pathlib
import select
import stat
import subprocess
import sys
import time

from . import places
from .command import Failure
from .processes import Sides, remove_folders

# Seconds for the worker to end its executors, and for the ranks to end.
ENDING = 10


def main(arguments):
    master, cores, memory, mapped_files, named_pipes, scratch = arguments
    node = os.environ["SLURMD_NODENAME"]
    # The config files may be gone at the end of the allocation.
    configs = pathlib.Path(mapped_files).read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
    pairs = os.path.dirname(next(line.split()[0] for line in configs if line.startswith("/")))
    _make_scratch(scratch, node)
    clean = [places.program("supply-clean"), "--mapped-files", mapped_files, "--named-pipes", named_pipes]
    command = [f"{os.environ['SPARK_HOME']}/bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", node]
    command += ["--webui-port", "0", "--cores", cores, "--memory", memory, "--work-dir", f"{scratch}/work", master]
    sides = Sides()
    try:
        sides.start("worker", command, stdout=sys.stderr, env={**os.environ, "SPARK_LOCAL_DIRS": scratch})
        status = 0
        while not _stdin_has_ended():
            ended = sides.wait(1, but="worker" if status else None)
            if ended == "signal":
                return 128 + sides.signal
            if ended:
                print(f"the Spark worker on {node} ended", flush=True)
                status = 1
        return status
    finally:
        sides.end(ENDING)
        _remove_pairs(clean, pairs)
        remove_folders([scratch])


def _make_scratch(scratch, node):
    """Makes the folder, unless it is the first node's. Each user of that node sees its name."""
    os.makedirs(os.path.dirname(scratch), exist_ok=True)
    try:
        os.mkdir(scratch, 0o700)
    except FileExistsError as error:
        found = os.lstat(scratch)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Failure(
                f"{scratch} on {node} is there, and belongs to another user, is a link, or is open to others (TMPDIR)"
            ) from error


def _stdin_has_ended():
    return select.select([0], [], [], 0)[0] and not os.read(0, 1)


def _remove_pairs(clean, pairs):
    """Removes the pairs of this node and their folder, when no living rank has one any more."""
    latest = time.monotonic() + ENDING
    while os.path.isdir(pairs) and time.monotonic() < latest:
        subprocess.run(clean, stdout=sys.stderr, check=False)
        try:
            os.rmdir(pairs)
        except OSError:
            time.sleep(0.1)
