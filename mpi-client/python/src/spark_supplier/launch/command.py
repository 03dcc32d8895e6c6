"""What all commands share: the project's folder, the parser of options, checks of values, and how a command fails."""

import argparse
import importlib
import os
import re
import signal
import sys
import tempfile

from . import places


class Failure(Exception):
    """Ends the command with one line on stderr, after the end of a log if there is one, and an exit status."""

    def __init__(self, message: str, status: int = 1, log: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.log = log


def temporary_folder():
    """The folder for temporary files."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise Failure(
            f"there is no folder for temporary files ({error.strerror}): set TMPDIR to one that this user can write, "
            "or mount a volume on /tmp, on Kubernetes an emptyDir"
        ) from error


class TimeLimit(Failure):
    """A time limit has passed."""


def run(module):
    """Runs main(arguments) of a module of this package as the command, with its result as the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        sys.exit(importlib.import_module(f".{module}", __package__).main(sys.argv[1:]))
    except Failure as failure:
        print(f"{failure.log}{os.path.basename(sys.argv[0])}: error: {failure}", file=sys.stderr)
        sys.exit(failure.status)


def become(command, environment):
    """Replaces this process by a command. The signals that Python ignores have their defaults again."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(command[0], command, environment)


class _Format(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog):
        super().__init__(prog, max_help_position=26, width=120)

    def add_usage(self, usage, actions, groups, prefix="Usage: "):
        super().add_usage(usage, actions, groups, prefix)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are worded as the other messages are. It takes no abbreviations of options."""

    def __init__(self, usage, description, epilog=None):
        super().__init__(
            usage=places.named(usage),
            description=places.named(description),
            epilog=places.named(epilog),
            allow_abbrev=False,
            formatter_class=_Format,
        )
        # help2man makes the man pages. It knows these headings, and "Usage".
        self._positionals.title, self._optionals.title = "Arguments", "Options"

    def option(self, name, metavar, help, type=str, **settings):
        """An option, or a positional argument if the name begins with no '-'."""
        self.add_argument(name, metavar=metavar, help=places.named(help), type=type, **settings)

    def repeatable(self, name, metavar, help):
        self.add_argument(name, metavar=metavar, help=f"{help}; repeatable", action="append", default=[])

    def error(self, message):
        message = re.sub(r"^argument (\S+): ", r"\1 ", message).replace("expected one argument", "needs a value")
        self.exit(2, f"Usage: {self.usage}\n{self.prog}: error: {message} (--help says more)\n")


def split_at_program(words):
    """Splits words at '--' into options and the command of the ranks, which is None if there is no '--'."""
    if "--" not in words:
        return words, None
    end = words.index("--")
    return words[:end], words[end + 1 :]


def pattern(expression, what):
    """A type of an option's values: text that matches the expression. `what` completes "'x' is not ..."."""

    def check(text):
        if not re.fullmatch(expression, text):
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
        return text

    return check


def number_of(what):
    text_of = pattern("[1-9][0-9]*", f"a number of {what}, 1 or more")
    return lambda text: int(text_of(text))


seconds = pattern(r"[0-9]+(\.[0-9]+)?", "a number of seconds")
_SIZE, _SIZE_FORMS = "[1-9][0-9]*(KiB|MiB|GiB)?", "give bytes, or a number followed by KiB, MiB or GiB"
block_size = pattern(_SIZE, f"a size: {_SIZE_FORMS}")
ring_size = pattern(f"auto|{_SIZE}", f"a size, or auto: {_SIZE_FORMS}")
share = pattern("[1-9][0-9]{0,3}|node", "a number of ranks, 1 or more, or node")
heap_size = pattern("[1-9][0-9]*[kKmMgGtT]", "a size such as 4g")
group_name = pattern(r"[^\s#]+", "a name of a group")


def add_config_options(parser):
    """The options that end up in the config files (config_files.write)."""
    parser.option("--ring", "SIZE", "bytes of each ring, or auto: by the caches (default: four blocks)", ring_size)
    parser.option("--block", "SIZE", "bytes of each block (default: a quarter of the ring, or 2MiB)", block_size)
    parser.option(
        "--group",
        "NAME",
        "group whose members may feed the ranks and read the config files, if Spark's executors run as another user "
        "(docs/SECURITY.md)",
        group_name,
    )


def set_share(parser, options):
    """Checks --share, and gives it to the ranks by the environment, which every launcher passes on."""
    if not options.share:
        return
    if options.ranks and options.share != "node" and options.ranks % int(options.share):
        parser.error(f"--ranks is {options.ranks}, and --share {options.share}: give a multiple of the share")
    os.environ["SUPPLY_SHARE"] = options.share


def add_run_options(parser, ranks, ranks_default):
    """The options that concern both sides of a run."""
    timeout = os.environ.get("SUPPLY_TIMEOUT") or "120"
    parser.option("--ranks", "N", f"number of ranks (default: {ranks_default})", number_of("ranks"), default=ranks)
    parser.option("--mapped-files", "FILE", "config file of both sides: the mapped file of each pair")
    parser.option("--named-pipes", "FILE", "config file of both sides: the named pipes of each pair")
    parser.option("--hosts", "FILE", "where the ranks run: a host file in Open MPI's format, 'HOST slots=N' a line")
    parser.option(
        "--share",
        "N",
        "each N neighbouring ranks of a node read one ring, and get the same data; node: all ranks of a node "
        "(docs/SHARE.md; default: SUPPLY_SHARE, or each rank has its own)",
        share,
        default=os.environ.get("SUPPLY_SHARE"),
    )
    parser.option(
        "--timeout", "SECONDS", "timeout of each wait (default: SUPPLY_TIMEOUT, or 120)", seconds, default=timeout
    )
