"""launch/make-configs: writes the two config files."""

from . import config_files
from .command import Parser, add_config_options, number_of


def main(arguments):
    parser = Parser(
        "launch/make-configs [--ring SIZE] [--block SIZE] [--group NAME] N FOLDER [OUTPUT_FOLDER]",
        "Writes mapped-files.conf and named-pipes.conf for the N pairs of a node. Existing files are not overwritten.",
        "A SIZE is a number of bytes, or a number followed by KiB, MiB or GiB: 64KiB.",
    )
    add_config_options(parser)
    parser.option("pairs", "N", "number of pairs of a node", number_of("pairs"))
    parser.option("folder", "FOLDER", "where the mapped files and named pipes will be, best on tmpfs: /dev/shm/supply")
    parser.option("output", "OUTPUT_FOLDER", "where the config files go (default: FOLDER); made if missing", nargs="?")
    options = parser.parse_args(arguments)
    output = options.output or options.folder
    config_files.write(options.pairs, options.folder, output, options.ring, options.block, options.group)
