"""launch/run-ranks: the MPI side of a run whose Supplier is started apart."""

import os

from . import config_files, host_file
from .command import Failure, Parser, add_run_options, become, set_share, split_at_program
from .mpi import Launcher

DESCRIPTION = """\
Starts PROGRAM by mpirun on the nodes of the host file, rank 0 on the first slot of the first node. Give the Supplier
the same three files. Every node must see them at the same paths. The exit status is mpirun's."""
EPILOG = """
Environment:
  MPIRUN  Open MPI's mpirun or MPICH's mpiexec, followed by options of your own (default: mpirun)
"""


def main(arguments):
    parser = Parser(
        "launch/run-ranks --hosts FILE --mapped-files FILE --named-pipes FILE [OPTION]... -- PROGRAM [ARGUMENT]...",
        DESCRIPTION,
        EPILOG,
    )
    add_run_options(parser, None, "the sum of the slots")
    words, program = split_at_program(arguments)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(f"unknown argument '{unknown[0]}': put the program after '--'")
    if not program:
        parser.error("no program after '--'")
    set_share(parser, options)
    files = (options.hosts, options.mapped_files, options.named_pipes)
    if None in files:
        parser.error("--hosts, --mapped-files and --named-pipes are needed")
    for file in files:
        if not os.access(file, os.R_OK):
            raise Failure(f"{file} cannot be read")
    slots = sum(of_host for _, of_host in host_file.read(options.hosts))
    ranks = options.ranks or slots
    if ranks > slots or not slots:
        raise Failure(f"{options.hosts} has {slots} slots for {ranks} ranks: add hosts or raise slots=n")
    mapped_files, named_pipes = os.path.realpath(options.mapped_files), os.path.realpath(options.named_pipes)
    environment = config_files.environment(mapped_files, named_pipes, options.timeout)
    launcher = Launcher()
    become([*launcher.command(ranks, options.hosts), *launcher.exports(config_files.exported()), *program], environment)
