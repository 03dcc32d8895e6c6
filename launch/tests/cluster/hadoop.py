"""HDFS and YARN on two nodes of this machine, by launch/dev/mini-cluster."""

import contextlib
import os
import pathlib
import re
import subprocess

from places import LAUNCH
from processes import ran

PROGRAM = LAUNCH / "dev" / "mini-cluster"
# In seconds. A start takes seconds on an idle machine. This ends a command that hangs, and measures nothing.
PATIENCE = 300


def hadoop(command, *arguments, check=True):
    done = ran(PROGRAM, command, *arguments, timeout=PATIENCE)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


class Hadoop:
    NODES = ("node-1", "node-2")

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        # Enough on each node for all containers of two applications.
        hadoop("start", "--nodes", len(self.NODES), "--node-cores", 16, "--node-memory", 8192, "--folder", folder)
        self.configuration = self.folder / "conf"

    def __call__(self, command, *arguments, check=True):
        return hadoop(command, "--folder", self.folder, *arguments, check=check)

    def on(self, node, *command):
        """For subprocess: a command on a node."""
        return [PROGRAM, "on", "--folder", self.folder, node, *command]

    def head_address(self):
        return self("on", "head", "getent hosts head").stdout.split()[0]

    def put(self, database, name=None):
        """Copies an LMDB into HDFS, under its own name or another. Returns its URI."""
        uri = f"/data/{name or database.name}"
        self("fs", "-mkdir", "-p", uri)
        self("fs", "-put", "-f", database / "data.mdb", uri)
        return f"hdfs://{uri}"

    def cached(self, node):
        """The copies in the node's cache: file to its inode."""
        caches = self.folder / "nodes" / node / "var-tmp"
        return {file: file.stat().st_ino for file in caches.glob("*/*/data.mdb")}

    def memory(self, node):
        """The node's /dev/shm, as this machine sees it."""
        holder = (self.folder / "nodes" / node / "holder").read_text().strip()
        return pathlib.Path("/proc", holder, "root/dev/shm")

    def signal(self, node, signal, process):
        """Sends a signal to a process by its number on the node, or to all processes with a name."""
        self(
            "on",
            node,
            f"kill -{signal} {process}" if isinstance(process, int) else f"pkill -{signal} --full -- {process}",
        )

    def cut(self, node, off=True):
        """Takes the node's cable out, or puts it back."""
        [bridge] = re.findall(r'bridge="(.*)"', (self.folder / "cluster").read_text())
        link = f"{bridge}-{node.partition('-')[2]}"
        subprocess.run(["ip", "link", "set", link, "down" if off else "up"], check=True)

    def processes(self):
        """The processes that write into the folder, and the holders of its nodes."""
        found = []
        for output in pathlib.Path("/proc").glob("[0-9]*/fd/2"):
            with contextlib.suppress(OSError):
                if os.readlink(output).startswith(f"{self.folder}/"):
                    found.append((output.parent.parent / "cmdline").read_bytes())
        return found

    def stop(self):
        self("stop")
