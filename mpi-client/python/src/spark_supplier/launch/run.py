"""One run on this machine: the Supplier, or a program of the user, and ranks, started together and ended together."""

import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from . import config_files, last_words, places
from .command import Failure, temporary_folder
from .last_words import StderrFiles, failed_side
from .mpi import Launcher
from .processes import remove_folders, signal_name

# Seconds that the other side gets to end by itself after one has failed: the failure travels through the pairs, or
# through YARN.
GRACE, GRACE_ON_YARN = 10, 60
# Seconds that a side gets to end when it is asked to. On YARN a JVM starts, which finds the application and ends it.
ENDING, ENDING_ON_YARN = 5, 60
# Seconds beyond its own timeout that the Supplier gets in all after its ranks have ended well.
SPARK_START = 60
_TRIM_SECONDS, _LOOK_SECONDS = 10, 1
_POLL_SECONDS = 0.05
# The Supplier's own status for a rank that did not start.
_NO_RANK = 3
_NO_PAIR = (
    "the ranks have ended with status 0, and none has opened its pair: "
    "does the program call supply_open(), or spark_supplier.ranks.open() in Python? supply-cat shows what a rank gets"
)


class Run:
    """A run: its two sides, its config files and its folders. A run that is started again is another one."""

    def __init__(self, options, sides, restarts):
        """restarts: Restarts."""
        self._options = options
        self._launcher = Launcher()
        self._sides = sides
        self._restarts = restarts
        # Where its ranks begin, if it may be started again.
        self.starts = None
        # Whether another attempt may end otherwise.
        self.may_go_on = True
        self._folders: list[pathlib.Path] = []
        # mpirun may start the ranks in another folder.
        self._of_mpi: pathlib.Path | None = None
        self._configs = [file and os.path.realpath(file) for file in (options.mapped_files, options.named_pipes)]
        self._ended_well = False
        self._ending = ENDING_ON_YARN if options.yarn else ENDING

    def _make_folder(self, parent):
        self._folders.append(pathlib.Path(tempfile.mkdtemp(prefix=f"supply-{os.getuid()}-", dir=parent)))
        return self._folders[-1]

    def execute(self, supplier_options, program):
        """Starts both sides and waits until they have ended. Returns the exit status, and the reason of a failure."""
        work, _ = self._prepare()
        self.starts = self._restarts.starts(self._configs[0])
        variables = {"SUPPLY_RESTARTS": str(self._restarts.count)} if self.starts else {}
        untouched = self._folders_of_pairs()
        supplier = self._start_supplier(work, supplier_options)
        ranks, errors, files = self._start_ranks(work, program, **variables)
        first = self._wait(files)
        if first == "ranks" and ranks.status == 0 and untouched and untouched == self._folders_of_pairs():
            self.may_go_on = False
            self._sides.end(self._ending)
            return _NO_RANK, _NO_PAIR
        limit = None if first == "signal" else self._limit_after(first, ranks if first == "ranks" else supplier)
        if first == "signal" or self._wait(files, limit, but=first) == "signal":
            return 128 + self._sides.signal, None
        # A side without a status here is ended by this command.
        status = {"supplier": supplier.status, "ranks": ranks.status}
        self._sides.end(self._ending)
        failed = failed_side(first, status)
        self._ended_well = not failed
        if not failed:
            return 0, None
        if failed == "supplier":
            return self._failure_of_supplier(supplier, status["supplier"], limit)
        return self._failure_of_ranks(ranks, errors, files)

    def _wait(self, files, seconds=None, but=None):
        """As Sides.wait. Meanwhile looks at the pairs, and files of the ranks' stderr, if there are any, stay small."""
        latest = time.monotonic() + (math.inf if seconds is None else seconds)
        while True:
            period = _TRIM_SECONDS if not self.starts or self.starts.look() else _LOOK_SECONDS
            remaining = latest - time.monotonic()
            ended = self._sides.wait(max(0, min(remaining, period)), but)
            if ended is not None or remaining <= period:
                return ended
            if files:
                files.trim()

    def _prepare(self):
        """Makes what both sides need. Returns a folder for temporary files, and one in memory."""
        options = self._options
        work = self._make_folder(temporary_folder())
        in_memory = self._make_folder("/dev/shm" if os.access("/dev/shm", os.W_OK) else temporary_folder())
        if not options.mapped_files:
            self._configs = config_files.write(
                options.ranks, in_memory, in_memory, options.ring, options.block, options.group
            )
            # Executors of another user must get through the folder.
            config_files.share(in_memory, options.group, 0o750)
        # MPI's own files must not change the folder of the pairs.
        self._of_mpi = self._make_folder(in_memory)
        return work, in_memory

    def _folders_of_pairs(self):
        """When each folder of this node's pairs was last changed. A rank that opens its pair changes it for good."""
        if self._options.hosts:
            return {}
        changed = {}
        for file in config_files.mapped_files(self._configs[0]):
            folder = os.path.dirname(file)
            changed[folder] = os.stat(folder).st_mtime_ns if os.path.isdir(folder) else None
        return changed

    def _start_supplier(self, work, supplier_options):
        options = self._options
        command: list[object] = [places.launcher("supplier")]
        if options.yarn:
            command = [places.launcher("submit-supplier"), *options.yarn.split(",")]
        command += [*supplier_options, "--ranks", options.ranks, "--timeout", options.timeout]
        command += ["--mapped-files", self._configs[0], "--named-pipes", self._configs[1]]
        command += ["--hosts", options.hosts] if options.hosts else []
        command += ["--share", options.share] if options.share else []
        environment = {**os.environ, "TMPDIR": str(work)}
        if sys.stderr.isatty():
            # The Supplier sees a pipe.
            environment["SUPPLY_TERMINAL"] = "1"
        return self._sides.start("supplier", command, relay="both", env=environment)

    def _start_ranks(self, work, program, **variables):
        """
        Returns the side, what its ranks write to stderr, and the files of each rank's stderr. variables: for their
        environment.
        """
        options = self._options
        command = self._launcher.command(options.ranks, options.hosts)
        command += self._launcher.exports(config_files.exported(variables))
        environment = config_files.environment(self._configs[0], self._configs[1], options.timeout)
        environment.update(variables)
        if self._launcher.is_mpich:
            # It writes the ranks' stderr there, and its own lines to its stderr.
            reader, writer = os.pipe()
            command += ["-errfile-pattern", f"/dev/fd/{writer}", *program]
            ranks = self._sides.start("ranks", command, relay="stderr", env=environment, pass_fds=[writer])
            os.close(writer)
            return ranks, self._sides.read(os.fdopen(reader, "rb")), None
        if not options.hosts:
            # Other nodes do not have these folders.
            environment.update(self._launcher.temporary_files_in(work, self._of_mpi))
        # Every node sees the folder of the config files.
        shared = os.path.dirname(os.path.abspath(self._configs[0])) if options.hosts else work
        of_ranks: list[str] = []
        files = None
        if os.access(shared, os.W_OK):
            made = self._make_folder(shared)
            of_ranks, folder = self._launcher.files_of_ranks(made, options.ranks)
            files = StderrFiles(folder, may_trim=folder == made) if folder else None
        ranks = self._sides.start("ranks", [*command, *of_ranks, *program], relay="stderr", env=environment)
        return ranks, ranks.output, files

    def _limit_after(self, first, side):
        """How long the other side may still run, in seconds, when one side has ended. None: without a limit."""
        if (first, side.status) == ("supplier", 2):
            # Its options are wrong: it has notified no rank.
            self.may_go_on = False
            return 0.1
        if side.status:
            return GRACE_ON_YARN if self._options.yarn else GRACE
        return int(float(self._options.timeout)) + SPARK_START if first == "ranks" else None

    @staticmethod
    def _failure_of_ranks(ranks, errors, files):
        if ranks.killed:
            return ranks.status, f"mpirun was killed ({signal_name(ranks.status)})"
        words = last_words.of_ranks(errors.lines(), files, ranks.status)
        return ranks.status, f"the ranks failed (status {ranks.status}): {words}"

    @staticmethod
    def _failure_of_supplier(supplier, status, limit):
        if status is None:
            return 1, f"the Supplier failed: it still ran {limit} s after its ranks had ended"
        if supplier.killed:
            return status, f"the Supplier was killed ({signal_name(status)})"
        lines = supplier.output.lines() or ["no message on stderr"]
        # Spark may log while it stops.
        error = next((line for line in reversed(lines) if line.startswith("supplier: error: ")), lines[-1])
        return status, f"the Supplier failed (status {status}): {error}"

    def clean_up(self):
        """Ends both sides and removes what the run has made."""
        self._sides.end(self._ending)
        try:
            if self._options.mapped_files:
                self._clean_pairs()
        except (OSError, Failure) as error:
            print(f"supply-run: the pairs cannot be cleaned: {error}", file=sys.stderr)
        remove_folders(self._folders)

    def _clean_pairs(self):
        """Removes the pairs of killed ranks in the user's config files. The run's own pairs go with their folder.

        Results stay, because another Spark program may read them.
        """
        options = self._options
        command = [places.program("supply-clean"), "--mapped-files", options.mapped_files]
        command += ["--named-pipes", options.named_pipes, "--keep-results"]
        if not options.hosts:
            subprocess.run(command, stdout=sys.stderr, check=False)
        elif not (self._ended_well or "SUPPLY_NODES_CLEAN" in os.environ):  # slurm-run cleans the nodes itself.
            self._launcher.on_each_node(options.hosts, command)


class ServingRun(Run):
    """Of a Spark program of the user's own, and of the supply-server whose ranks it attaches to.

    The sides are called "ranks" and "program".
    """

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
    built = places.program("supply-server")
    wanted = os.environ.get("SUPPLY_SERVER") or (str(built) if built.exists() else "supply-server")
    found = shutil.which(wanted)
    if not found:
        raise Failure(f"there is no program '{wanted}': {places.MISSING_MPI}, or set SUPPLY_SERVER", 127)
    return found
