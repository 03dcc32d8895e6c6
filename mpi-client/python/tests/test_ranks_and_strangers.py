"""Another user of the node, while ranks of spark_supplier are there: the key, the files, the sockets."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from spark_supplier import Mpirun, Rows, Supplier
from spark_supplier.offload import MatrixRanks

from layout import ROOT
from rank_server import SERVER
from supplier_session import rows, session_fixture, shared_memory
from task import wait_until

sys.path.append(str(ROOT / "launch" / "tests"))

from stranger import AS_STRANGER, attempts_that_succeed  # type: ignore[import-not-found]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start a process of another user")

RANKS, ROWS = 2, 1000
spark = session_fixture(2 * RANKS + 1)


def lingers(folder):
    """A function for ranks: it writes its process id into the folder, and returns when there is a file `end`."""

    def train(data):
        import pathlib
        import time

        for _ in data:
            pass
        note = pathlib.Path(folder, f"{os.environ['RANK']}.part")
        note.write_text(str(os.getpid()))
        note.rename(note.with_suffix(".pid"))
        while not pathlib.Path(folder, "end").exists():
            time.sleep(0.1)

    return train


def processes_with(word, file):
    """The processes of this machine that have the word in that file of /proc."""
    found = set()
    for path in pathlib.Path("/proc").glob(f"[0-9]*/{file}"):
        with contextlib.suppress(OSError):
            if word in path.read_bytes():
                found.add(int(path.parent.name))
    return found


@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_the_key_and_the_files_of_a_run(spark, tmp_path, launcher):
    with shared_memory() as folder:
        os.chmod(folder, 0o755)
        ranks = Mpirun() if launcher == "mpirun" else launcher
        run = threading.Thread(
            target=Supplier(ranks=RANKS, folder=folder, launcher=ranks, backend=None).run,
            args=(lingers(tmp_path), Rows(rows(spark, ROWS), columns=["id"], batch_size=16)),
        )
        run.start()
        try:
            wait_until("the ranks", lambda: len(list(tmp_path.glob("*.pid"))) == RANKS)
            ranks = {int(note.read_text()) for note in tmp_path.glob("*.pid")}
            # What a process was started with stays there, also when it has removed the key from its environment.
            environment = pathlib.Path(f"/proc/{min(ranks)}/environ").read_bytes()
            [key] = re.findall(rb"SUPPLY_HUB_KEY=([0-9a-f]{64})", environment)
            assert processes_with(key, "cmdline") == set()
            assert processes_with(key, "environ") >= ranks
            made = [pathlib.Path(folder, name) for name in os.listdir(folder)]
            [config] = [path for path in made if path.name.endswith("-conf")]
            assert len(made) > 1
            # The config files name paths, and no secret. Executors of another user read them.
            may = {f"list {config}", *(f"read {file}" for file in config.iterdir())}
            assert set(attempts_that_succeed(made, processes_with(key, "environ"))) == may
        finally:
            (tmp_path / "end").touch()
            run.join()


ASK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(sys.argv[2].encode())
    sys.stdout.write(connection.recv(1 << 16).decode())
except (BrokenPipeError, ConnectionResetError):
    pass
"""


@pytest.mark.skipif(not SERVER.exists(), reason="no supply-server: libsupply was built without MPI")
def test_the_sockets_of_ranks(spark, libraries):
    """No other user's command is heard, even if the folder and the socket are opened to all."""
    command = json.dumps({"command": "status", "id": "one"}) + "\n"
    with shared_memory() as folder:
        os.chmod(folder, 0o755)
        options = {"libraries": libraries, "server": SERVER, "folder": folder, "timeout": 60}
        with MatrixRanks(spark, RANKS, "libroutines.so", **options):
            [path] = pathlib.Path(folder).glob("*/*-0.mapped.server")
            assert path.stat().st_mode & 0o777 == 0o700
            assert attempts_that_succeed([path.parent]) == []
            path.parent.chmod(0o755)
            assert attempts_that_succeed([path.parent]) == [f"list {path.parent}"]
            path.chmod(0o777)
            asked = [sys.executable, "-c", ASK, str(path), command]
            as_stranger = [*AS_STRANGER, "/usr/bin/python3", *asked[1:]]
            assert subprocess.run(as_stranger, stdout=subprocess.PIPE, check=True, timeout=60).stdout == b""
            assert b'"done"' in subprocess.run(asked, stdout=subprocess.PIPE, check=True, timeout=60).stdout
