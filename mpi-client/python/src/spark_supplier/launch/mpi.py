"""The launcher of the ranks: Open MPI's mpirun, or MPICH's mpiexec."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable

from . import host_file
from .command import Failure, TimeLimit

_VERSION_SECONDS = 30


class Launcher:
    """The command in MPIRUN (default: mpirun), with its own options, in the words of a shell."""

    def __init__(self) -> None:
        try:
            self._words = shlex.split(os.environ.get("MPIRUN", "")) or ["mpirun"]
        except ValueError as error:
            raise Failure(f"MPIRUN is '{os.environ['MPIRUN']}', which no shell could split: {error}") from error
        if not shutil.which(self._words[0]):
            raise Failure(f"there is no '{self._words[0]}' on PATH: install Open MPI or MPICH, or set MPIRUN", 127)
        version = self._version()
        # Hydra is the launcher of MPICH.
        self.is_mpich = version.startswith(b"HYDRA")
        open_mpi = re.search(rb"\(Open MPI\) ([0-9]+)", version)
        # Open MPI 5 writes the stdout of a rank that has a file only into that file.
        self._has_files_of_ranks = not open_mpi or int(open_mpi[1]) < 5
        self._as_root = [] if os.geteuid() or self.is_mpich else ["--allow-run-as-root"]

    def _version(self) -> bytes:
        """What it says about itself. Raises Failure if it is no launcher whose options are known."""
        command = [self._words[0], "--version"]
        try:
            version = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_SECONDS, check=False
            ).stdout
        except subprocess.TimeoutExpired as error:
            raise TimeLimit(f"'{' '.join(command)}' did not end within {_VERSION_SECONDS} s") from error
        except OSError as error:
            raise Failure(f"'{' '.join(command)}' does not start: {error.strerror}") from error
        if not version.startswith(b"HYDRA") and b"Open MPI" not in version:
            raise Failure(
                f"'{self._words[0]}' is neither Open MPI's mpirun nor MPICH's mpiexec: name one of them in MPIRUN, or "
                "start the ranks yourself (docs/LMDB.md, docs/RANKS.md, docs/OFFLOAD.md)"
            )
        return version

    def command(self, ranks: int, hosts: str | os.PathLike[str] | None = None, oversubscribe: bool = True) -> list[str]:
        """
        Starts `ranks` ranks on the slots of a host file in its order, as the Supplier numbers them, too. oversubscribe:
        also if Open MPI knows of fewer slots.
        """
        if hosts is not None and not os.access(hosts, os.R_OK):
            raise Failure(f"cannot read the host file {os.fspath(hosts)}")
        command = [*self._words, "-n", str(ranks)]
        if self.is_mpich:
            nodes = ",".join(f"{host}:{slots}" for host, slots in host_file.read(hosts)) if hosts else ""
            return [*command, "-bind-to", "none", *(["-hosts", nodes] if nodes else [])]
        command += ["--map-by", "slot", "--bind-to", "none", *self._as_root]
        command += ["--oversubscribe"] if oversubscribe else []
        return [*command, *(["--hostfile", os.fspath(hosts)] if hosts else [])]

    def exports(self, names: Iterable[str]) -> list[str]:
        """Options that follow command(): ranks on other nodes get these variables."""
        # MPICH passes the whole environment on.
        return [] if self.is_mpich else [word for name in names for word in ("-x", name)]

    @staticmethod
    def temporary_files_in(folder: str | os.PathLike[str], memory: str | os.PathLike[str] | None) -> dict[str, str]:
        """
        Variables of Open MPI, version 4 and 5: what a killed mpirun leaves on this node is in these folders; `memory`
        is on tmpfs.
        """
        of_processes = dict.fromkeys(("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"), str(folder))
        return {**of_processes, "OMPI_MCA_btl_vader_backing_directory": str(memory)}

    def files_of_ranks(self, folder: pathlib.Path, ranks: int) -> tuple[list[str], pathlib.Path | None]:
        """
        Options with which Open MPI writes each rank's stderr into a file below `folder`, too. (Its --tag-output loses
        lines.) Returns them and the folder, which is another one if MPIRUN names it, and None if there are no files.
        """
        if not self._has_files_of_ranks:
            return [], None
        option = "--output-filename"
        if option in self._words:
            return [], pathlib.Path(self._words[self._words.index(option) + 1].partition(":")[0])
        for rank in range(ranks):
            of_rank = folder / "1" / f"rank.{rank:0{len(str(ranks))}}"
            of_rank.mkdir(parents=True)
            # Nobody reads the ranks' stdout there.
            (of_rank / "stdout").symlink_to(os.devnull)
        return [option, str(folder)], folder

    def on_each_node(self, hosts: str, command: Iterable[object]) -> None:
        """Runs a command once on each node of a host file, for at most half a minute. Its output goes to stderr."""
        if self.is_mpich:
            nodes = host_file.nodes(hosts)
            words = ["-n", str(len(nodes)), "-ppn", "1", "-hosts", ",".join(nodes)]
        else:
            words = ["--hostfile", str(hosts), "--map-by", "ppr:1:node", *self._as_root]
        subprocess.run(
            ["timeout", "--kill-after=5", "30", *self._words, *words, *map(str, command)],
            stdout=sys.stderr,
            check=False,
        )
