"""One run of a Spark program of the user's own, and of the supply-server whose ranks it attaches to."""

import os
import shutil
import time

from . import config_files, places
from .command import Failure
from .processes import signal_name
from .run import GRACE, Run

_POLL_SECONDS = 0.05


class ServingRun(Run):
    """The sides are called "ranks" and "program"."""

    def execute(self, supplier_options, program):
        """As for a run with the Supplier, which this run does not have."""
        work, in_memory = self._prepare()
        # Ranks share the node's cores.
        threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")
        ranks, errors, files = self._start_ranks(work, [_server()], OPENBLAS_NUM_THREADS=threads)
        first = self._wait_for_ranks()
        if first is None:
            user = self._sides.start("program", program, env=self._environment(in_memory))
            first = self._wait(files)
            # A program that ends its ranks continues.
            if first == "ranks" and self._sides.wait(GRACE if ranks.status else None, but="ranks") == "program":
                first = "ranks" if ranks.status and user.status else "program"
        if self._sides.signal:
            return 128 + self._sides.signal, None
        if first == "program":
            self._ended_well = True
            return self._of_program(user)
        self._sides.end(self._ending)
        return self._failure_of_ranks(ranks, errors, files)

    def _wait_for_ranks(self):
        """Waits for their sockets. Returns None if they are there, or what has ended first, as Sides.wait does.

        Those of other nodes cannot be seen from here: the program waits for them.
        """
        options = self._options
        if options.hosts:
            return None
        files = config_files.mapped_files(self._configs[0])
        latest = time.monotonic() + float(options.timeout)
        while not all(os.path.exists(f"{file}.server") for file in files[: options.ranks]):
            ended = self._sides.wait(_POLL_SECONDS)
            if ended:
                return ended
            if time.monotonic() > latest:
                raise Failure(f"the ranks of supply-server did not start within {options.timeout} s (--timeout)")
        return None

    def _environment(self, in_memory):
        """That of the program: MatrixRanks.attach(spark) finds the ranks in it."""
        options = self._options
        environment = config_files.environment(self._configs[0], self._configs[1], options.timeout)
        environment["SUPPLY_RANKS"] = str(options.ranks)
        environment.pop("SUPPLY_HOSTS", None)
        if options.hosts:
            environment["SUPPLY_HOSTS"] = os.path.abspath(options.hosts)
        else:
            environment.setdefault("SUPPLY_RESULTS_FOLDER", str(in_memory))
        return environment

    @staticmethod
    def _of_program(program):
        if program.killed:
            return program.status, f"the program was killed ({signal_name(program.status)})"
        return program.status, f"the program failed (status {program.status})" if program.status else None


def _server():
    """The path of supply-server."""
    built = places.program("supply-server")
    wanted = os.environ.get("SUPPLY_SERVER") or (str(built) if built.exists() else "supply-server")
    found = shutil.which(wanted)
    if not found:
        raise Failure(f"there is no program '{wanted}': {places.MISSING_MPI}, or set SUPPLY_SERVER", 127)
    return found
