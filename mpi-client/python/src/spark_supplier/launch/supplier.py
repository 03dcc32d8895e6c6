"""launch/supplier: starts the Supplier, the Spark side of every pair, by spark-submit."""

import sys

from .command import Parser, become
from .spark import Spark

EPILOG = """
docs/OPTIONS.md has the Supplier's own options; --help prints them, too.

Exit status: 0 if every rank has received everything; 1 if Spark or the source failed; 2 if an option is unknown or
missing; 3 if a rank did not attach, stalled, failed or died; 130 or 143 if a signal ended it.

Environment:
  SPARK_HOME        Spark to use (default: PySpark's, then that of spark-submit on PATH; in a checkout: the one in
                    build/venv, and 'make build SPARK=...' makes the jar for another)
  SPARK_CONF_DIR    Spark's settings (default: SPARK_HOME/conf if it has a spark-defaults.conf). Those that come with
                    this command, configs/spark, hold for what it does not set
  TMPDIR            where Spark and Java put temporary files (default: /tmp)
  SPARK_LOCAL_DIRS  where Spark spills to (default: TMPDIR)
"""


def main(arguments):
    parser = Parser(
        "launch/supplier [--master MASTER] [--conf KEY=VALUE]... [SUPPLIER OPTION]...",
        "Starts the Supplier by spark-submit.",
        EPILOG,
    )
    parser.option("--master", "MASTER", "as in spark-submit (default: local[RANKS], with the value of --ranks)")
    parser.repeatable("--conf", "KEY=VALUE", "as in spark-submit")
    parser.option("--ranks", "N", "number of ranks (default: 1)", default="1")
    others = [word for word in arguments if word not in ("-h", "--help")]
    options, own = parser.parse_known_args(others)
    own += ["--ranks", options.ranks]
    if others != arguments:
        parser.print_help()
        print(flush=True)
        own.append("--help")
    master = options.master or f"local[{options.ranks}]"
    command, environment = Spark().program("supply.lmdb.Supplier", master, options.conf, own)
    if sys.stderr.isatty():
        # The JVM cannot find that out. On a terminal it shows the progress in another way.
        environment["SUPPLY_TERMINAL"] = "1"
    become(command, environment)
