"""Another user of the node, while a run is there: its files, its processes, its ports, and the names of its folders."""

import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile

import pytest

import databases
from pairs import Pairs
from places import LAUNCH
from processes import ran
from stranger import AS_STRANGER, attempts_that_succeed
from users import needs_root
from waiting import wait_until

pytestmark = needs_root

NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that every user can list."""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture
def endless(supply_run, tmp_path, open_folder):
    """A run that supplies its ranks until it is ended. TMPDIR is a folder that every user can list."""
    database = databases.write(tmp_path / "lmdb", databases.numbered(300))
    run = supply_run("--lmdb", database, "--ranks", 2, "--epochs", "1000000", TMPDIR=str(open_folder))
    run.wait_until_supplied()
    return run


def test_a_run_keeps_strangers_out(endless, open_folder):
    folders = [pathlib.Path(endless.mapped_file()).parent, *open_folder.iterdir()]
    processes = endless.mark.processes()
    assert len(folders) > 1 and len(processes) > 3
    assert attempts_that_succeed(folders, processes) == []
    # Whoever is heard at a port of Spark could run code in the Supplier: its messages are Java's serialized objects.
    of_java = [pid for pid in processes if of_process(pid, "comm") == "java\n"]
    answers = [answer_of_spark(port) for port in listening_ports(of_java)]
    assert len(answers) >= 2
    assert [text for text in answers if "Expected SaslMessage" not in text] == []
    # Every user can read what ps shows.
    for process in processes:
        words = of_process(process, "cmdline")
        assert not re.findall(r"[^\0]*(?:secret|password|token|authkey)[^\0]*", words, re.IGNORECASE)
        assert not re.findall(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", words)
    endless.process.terminate()
    assert endless.finish() == 143
    assert list(open_folder.iterdir()) == []


def test_the_attempts_of_a_stranger_succeed_where_they_may(open_folder):
    """Otherwise the tests here would not say anything."""
    (open_folder / "folder").mkdir()
    (open_folder / "folder" / "file").write_text("open to all")
    for path, mode in ((open_folder / "folder", 0o777), (open_folder / "folder" / "file", 0o666)):
        path.chmod(mode)
    with subprocess.Popen([*AS_STRANGER, "sleep", "1000"]) as sleeping:
        wait_until(lambda: pathlib.Path(f"/proc/{sleeping.pid}/comm").read_text() == "sleep\n")
        done = {line.partition(" /")[0] for line in attempts_that_succeed([open_folder], [sleeping.pid])}
        sleeping.kill()
    assert {"list", "read", "write", "make a file in", "make a link in", "link", "rename"} <= done
    assert {f"read environ of {sleeping.pid}", f"signal {sleeping.pid}"} <= done


def listening_ports(processes):
    """The TCP ports of the processes."""
    sockets = set()
    for process in processes:
        for link in pathlib.Path(f"/proc/{process}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:  # It was closed meanwhile.
                continue
    tables = [pathlib.Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return {
        int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets
    }


def answer_of_spark(port):
    """What Spark's network library answers to a call without a secret: the text of its refusal."""
    body = b"no secret, and no message of Spark either"
    message = struct.pack("!bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), 30) as connected:
        connected.sendall(struct.pack("!q", 8 + len(message)) + message)
        connected.settimeout(30)
        try:
            return connected.recv(1 << 16).decode(errors="replace")
        except ConnectionResetError:
            return ""


def of_process(process, name):
    """The text of a file of /proc. Empty: the process has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def start_on_node(open_folder):
    """What slurm-run starts on each node, with a scratch folder of that name. Returns the process, which has ended."""
    folder = open_folder / "run"
    folder.mkdir(mode=0o700)
    pairs = Pairs(folder, 1)
    # Of pairs that no rank has made: the node would wait until their folder is empty.
    for file in (pairs.mapped_files, pairs.named_pipes):
        file.write_text(file.read_text().replace(f"{folder}/", f"{folder}/pairs/"))
    spark = open_folder / "bin" / "spark-class"
    spark.parent.mkdir()
    spark.write_text(f"#!/bin/sh\ntouch {open_folder}/started\n")
    spark.chmod(0o755)

    def start(scratch):
        files = [pairs.mapped_files, pairs.named_pipes]
        command = [LAUNCH / "slurm-run", "--on-node", "spark://localhost:1", "1", "1g", *files, scratch]
        return ran(*command, SLURMD_NODENAME="node", SPARK_HOME=str(open_folder))

    return start


@pytest.mark.parametrize("taken", ["folder", "link", "open"])
def test_a_scratch_folder_that_another_user_has_made(start_on_node, open_folder, taken):
    """On the other nodes of a job its name is no secret any more."""
    scratch = open_folder / "scratch"
    (open_folder / "target").mkdir(mode=0o700)
    if taken == "link":
        scratch.symlink_to("target")
    else:
        scratch.mkdir()
        scratch.chmod(0o777 if taken == "open" else 0o700)
        os.chown(scratch, 0 if taken == "open" else NOBODY, -1)
    done = start_on_node(scratch)
    assert done.returncode == 1
    assert f"{scratch} on node is there, and belongs to another user, is a link, or is open to others" in done.stderr
    assert not (open_folder / "started").exists() and list((open_folder / "target").iterdir()) == []
    assert scratch.exists()


def test_a_scratch_folder_of_the_first_node(start_on_node, open_folder):
    scratch = open_folder / "scratch"
    scratch.mkdir(mode=0o700)
    assert start_on_node(scratch).returncode == 0
    assert not scratch.exists()
    assert start_on_node(open_folder / "new" / "scratch").returncode == 0
    shutil.rmtree(open_folder / "new")
