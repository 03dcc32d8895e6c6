"""A supply-server that a test starts itself, as a user does by mpirun."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess

import pytest

from ending import end_mpirun, memory_in
from layout import ROOT
from supplier_session import shared_memory
from task import wait_until

SERVER = ROOT / "build" / "mpi-client" / "supply-server"
LINALG = ROOT / "build" / "mpi-client" / "libsupply_linalg.so"
# Of the tests with matrices of their own routines, and rows of the fixture `numbers`.
RANKS, NUMBERS = 2, 100
_END_SECONDS = 60


def skip_without_server():
    """Skips the module if this environment cannot start ranks from PySpark."""
    if not SERVER.exists():
        pytest.skip("no supply-server: libsupply was built without MPI", allow_module_level=True)


def skip_without_linalg():
    skip_without_server()
    if not LINALG.exists():
        pytest.skip("no libsupply_linalg: libsupply was built without OpenBLAS", allow_module_level=True)


def has_slepc():
    """Without SLEPc, libsupply_linalg has no Lanczos method and no sparse matrices."""
    return b"SVDCreate" in LINALG.read_bytes()


@contextlib.contextmanager
def started(spark, libraries, **options):
    """Ranks of spark_supplier with the routines that `libraries` has."""
    from spark_supplier.offload import MatrixRanks

    with shared_memory() as folder:
        options = {"ranks": RANKS, "library": "libroutines.so", "timeout": 60, **options}
        with MatrixRanks(spark, libraries=libraries, server=SERVER, folder=folder, **options) as ranks:
            yield ranks


def compile_routines(folder):
    """The example of the documents, routines that fail in all ways, and names of others, compiled as a user would."""
    tests = ROOT / "mpi-client/python/tests"
    compile_library(ROOT / "mpi-client/examples/column_sums.c", folder / "libcolumn_sums.so")
    compile_library(tests / "routines.c", folder / "libroutines.so")
    for i in (1, 2):
        compile_library(tests / "names.c", folder / f"libnames_{i}.so", f"-DLIBRARY={i}")
    compile_library(tests / "names.c", folder / "libnames_old.so", "-DLIBRARY=3", "-DOTHER_HEADER")
    return folder


def compile_library(source, library, *options):
    include = ROOT / "mpi-client" / "include"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-I", include, *options, source, "-o", library], check=True)


class RankServer:
    """folder: in memory, for the pairs and the config files."""

    def __init__(self, folder, ranks, libraries):
        self.ranks = ranks
        self.folder = pathlib.Path(folder)
        self.mapped_files, self.named_pipes = self.folder / "mapped-files.conf", self.folder / "named-pipes.conf"
        pairs = [self.folder / "pairs" / f"pair-{i}" for i in range(ranks)]
        self.mapped_files.write_text("".join(f"{pair}.mapped\n" for pair in pairs))
        self.named_pipes.write_text("".join(f"{pair}.request {pair}.notification\n" for pair in pairs))
        self.environment = {
            "SUPPLY_MAPPED_FILES": str(self.mapped_files), "SUPPLY_NAMED_PIPES": str(self.named_pipes),
            **memory_in(self.folder),
        }  # fmt: skip
        self._libraries = str(libraries)
        self._mpirun: subprocess.Popen[bytes] | None = None

    def files(self):
        """The arguments of MatrixRanks.attach that name them."""
        return {"ranks": self.ranks, "mapped_files": self.mapped_files, "named_pipes": self.named_pipes}

    def start(self, timeout=60):
        root = [] if os.geteuid() else ["--allow-run-as-root"]
        self._mpirun = subprocess.Popen(
            ["mpirun", "-n", str(self.ranks), "--oversubscribe", *root, SERVER],
            env={**os.environ, **self.environment, "SUPPLY_LIBRARIES": self._libraries, "SUPPLY_TIMEOUT": str(timeout)},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def wait(self):
        """Waits until the ranks can be reached."""
        wait_until("the sockets", lambda: all(map(self._listens, range(self.ranks))))

    def _listens(self, rank):
        """A server has its name before it listens."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self._socket(rank)))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
        return True

    def finish(self):
        """Waits until the ranks have ended. The exit status of mpirun."""
        assert self._mpirun is not None
        return self._mpirun.wait(_END_SECONDS)

    def end(self):
        if self._mpirun is not None:
            end_mpirun(self._mpirun)

    def _socket(self, rank):
        return self.folder / "pairs" / f"pair-{rank}.mapped.server"

    def send(self, rank, name, identity, **values):
        """Sends a command to one rank alone. A socket with the answer: see answer_on()."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_END_SECONDS)
        connection.connect(str(self._socket(rank)))
        connection.sendall(json.dumps({"command": name, "id": identity, **values}).encode() + b"\n")
        return connection

    def send_to_all(self, name, identity, **values):
        """The last line that each rank sends."""
        connections = [self.send(rank, name, identity, **values) for rank in range(self.ranks)]
        return [answer_on(connection) for connection in connections]

    def pair(self, rank):
        """The paths of its mapped file and pipes."""
        return [self.folder / "pairs" / f"pair-{rank}.{name}" for name in ("mapped", "request", "notification")]


def answer_on(connection):
    """The last line that a rank sends."""
    with connection, connection.makefile() as lines:
        return json.loads(list(lines)[-1])
