"""launch/supply-run: one run on this machine; both sides started together and ended together."""

import os
import shutil
import sys

from . import places
from .command import (
    Failure,
    Parser,
    add_config_options,
    add_run_options,
    become,
    number_of,
    pattern,
    set_share,
    split_at_program,
)
from .processes import Sides
from .restarts import Restarts
from .run import Run, ServingRun

DESCRIPTION = """\
Starts the Supplier (launch/supplier, by spark-submit) and 'mpirun -n RANKS PROGRAM ARGUMENT...' and waits for both. If
one fails, the other is ended, too. The exit status and the last line on stderr are those of the side that failed first.
Nothing is left: no process, no mapped file, no named pipe, no temporary folder.

Without --mapped-files and --named-pipes the run makes config files for pairs in a folder of its own in /dev/shm;
--ring, --block and --group are for these. All other options are those of the Supplier (docs/OPTIONS.md) and of
launch/supplier.

With --max-restarts N, both sides start again, at most N times, when one has failed: a rank, the driver or an executor
was killed, or a node was lost. The ranks continue where their program's checkpoint says: it has the position of each
rank (supply_position_save in supply.h), with which the rank opens its next pair. A line on stderr says why, and from
where. A run whose ranks begin where they began before, and which fails for the same reason, is not started again,
unless a process was killed or an executor lost. A signal to this command ends the run.

With --serve PROGRAM is a Spark program of your own, for example 'python program.py' or 'spark-submit program.py', and
the ranks are those of supply-server (docs/OFFLOAD.md). MatrixRanks.attach(spark) finds them in the environment.
When the program ends, the ranks are ended, and the exit status is the program's. It has no stdin: for an interactive
program, start the ranks by launch/run-ranks.

With --serve-ranks N there is no PROGRAM: something else starts N ranks, on any nodes, and they connect to this run
(docs/FEEDERS.md). The Supplier prints their SUPPLY_CONNECT and SUPPLY_KEY. The exit status is the Supplier's."""
EPILOG = """
The ranks' stdout is passed on to stdout as mpirun writes it: lines of different ranks may be mixed, and MPICH writes
there that a rank was killed. Everything else goes to stderr, the Supplier's table too. With --serve the program's
stdout is passed on, too.

Environment:
  SUPPLY_KEY  with --serve-ranks, what ranks must have as SUPPLY_KEY (default: a random text)
  MPIRUN      Open MPI's mpirun or MPICH's mpiexec, followed by options of your own (default: mpirun)
  SPARK_HOME, SPARK_CONF_DIR, TMPDIR  as in launch/supplier --help
  SUPPLY_RESTARTS                     with --max-restarts, set for PROGRAM: how often both sides have been started again
  SUPPLY_SERVER, SUPPLY_LIBRARIES     with --serve: the program supply-server (default: the one of this
                                      installation), and the folder of its libraries
"""


def main(arguments):
    parser = Parser("launch/supply-run [OPTION]... -- PROGRAM [ARGUMENT]...", DESCRIPTION, EPILOG)
    add_run_options(parser, 1, 1)
    parser.option(
        "--yarn",
        "MEMORY,EXECUTORS,CORES",
        "submit the Supplier to YARN (launch/submit-supplier), with HADOOP_CONF_DIR set. --hosts names the nodes: they "
        "must see the files of --mapped-files and --named-pipes at the same paths",
    )
    parser.add_argument(
        "--serve",
        nargs="?",
        metavar="NAME",
        const="",
        help="start supply-server with --ranks ranks, and PROGRAM, which attaches to them, instead of the Supplier. "
        "With --serve-ranks, the NAME of the run in its address (default: supply)",
    )
    parser.option(
        "--serve-ranks",
        "N",
        "start the Supplier alone, for N ranks that something else starts, and that connect",
        number_of("ranks"),
    )
    parser.option(
        "--max-restarts",
        "N",
        "start both sides again, at most N times, when one has failed (default: 0)",
        lambda text: int(pattern("[0-9]+", "a number of restarts")(text)),
        default=0,
    )
    add_config_options(parser)
    words, program = split_at_program(arguments)
    options, supplier_options = parser.parse_known_args(words)
    if options.serve_ranks:
        _serve_ranks(parser, options, supplier_options, program)
    if options.serve:
        parser.error(f"--serve '{options.serve}' names a run of --serve-ranks: give that, too, or no name")
    options.serve = options.serve is not None
    if program is None:
        parser.error("no '--': put the program after it")
    if not program:
        parser.error("no program after '--'")
    if bool(options.mapped_files) != bool(options.named_pipes):
        parser.error("--mapped-files and --named-pipes go together: give both or neither")
    if options.mapped_files and (options.ring or options.block or options.group):
        parser.error("--ring, --block and --group stand in the config files: do not give them with --mapped-files")
    if options.yarn and not (options.mapped_files and options.hosts):
        parser.error("--yarn needs --hosts, --mapped-files and --named-pipes: files that every node sees")
    if options.serve and supplier_options:
        parser.error(f"unknown argument '{supplier_options[0]}': with --serve, put the program's after '--'")
    if options.serve and options.max_restarts:
        parser.error("--max-restarts restarts the Supplier and its ranks, and --serve has no Supplier: choose one")
    if options.serve and options.yarn:
        parser.error("--yarn submits the Supplier, and --serve starts a program of your own: choose one")
    if options.serve and options.share:
        parser.error("--share is for ranks that read rows, and --serve starts supply-server: choose one")
    set_share(parser, options)
    command = [find_program(program[0]), *program[1:]]
    status, failure = _run(options, supplier_options, command)
    if failure:
        print(f"supply-run: {failure}", file=sys.stderr)
    return status


def _serve_ranks(parser, options, supplier_options, program):
    """Becomes the Supplier."""
    if program is not None:
        parser.error(
            "--serve-ranks starts no PROGRAM: leave '--' and it out, and start the ranks where they are to run"
        )
    for name in ("mapped_files", "named_pipes", "hosts", "share", "ring", "block", "group", "yarn", "max_restarts"):
        if vars(options)[name]:
            parser.error(f"--{name.replace('_', '-')} is not for ranks that connect (--serve-ranks): leave it out")
    if options.ranks != 1:
        parser.error("--serve-ranks has the number of ranks: leave --ranks out")
    own = ["--ranks", str(options.serve_ranks), "--timeout", options.timeout, "--serve", options.serve or "supply"]
    become([str(places.launcher("supplier")), *supplier_options, *own], os.environ)


def _run(options, supplier_options, command):
    """Returns the exit status of the last attempt, and the reason of its failure."""
    sides = Sides(again=options.max_restarts > 0)
    restarts = Restarts(options.max_restarts, many_nodes=bool(options.hosts))
    while True:
        run = (ServingRun if options.serve else Run)(options, sides, restarts)
        try:
            status, failure = run.execute(supplier_options, command)
        finally:
            run.clean_up()
        if run.starts:
            run.starts.say()
        if not (failure and run.starts and run.may_go_on):
            return status, failure
        again, failure = restarts.after(run.starts, status, failure)
        if not again:
            return status, failure
        sides.listen()
        if sides.signal:
            return 128 + sides.signal, None


def find_program(name):
    """Its path."""
    path = shutil.which(name)
    if path:
        return path
    if os.path.exists(name):
        raise Failure(f"the program '{name}' is not executable: chmod +x, or put its interpreter in front", 126)
    raise Failure(f"there is no program '{name}', neither as a path nor on PATH", 127)
