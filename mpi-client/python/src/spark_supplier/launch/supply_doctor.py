"""launch/supply-doctor: checks, before a run, both sides of this node for what would make the run fail."""

import os
import re
import shutil
import signal
import subprocess
import sys

from . import places
from .command import Failure, Parser
from .processes import ties
from .spark import Spark

HELP = """\
Usage: {usage}

Checks this node before a run, as the user who will run it. Prints one line for each check, and below it what to do.
Changes nothing. The Spark side is checked in a JVM that spark-submit starts, as for the Supplier.

Options:
  --conf KEY=VALUE      a setting of Spark that the run will have; repeatable
{options}

Exit status: 0 if a run can start (there may be warnings), 1 if a check has failed, 2 on a wrong option.

Environment:
  SPARK_HOME, SPARK_CONF_DIR, TMPDIR  as in launch/supplier --help"""
USAGE = "launch/supply-doctor [--conf KEY=VALUE]... [OPTION]..."

# A JVM may take so long to start on a busy machine, in seconds.
TIMEOUT = 120


def main(arguments):
    doctor = places.program("supply-doctor")
    if not os.access(doctor, os.X_OK):
        raise Failure(f"no {doctor}: {places.MISSING}")
    if "--version" in arguments:
        print(_output(doctor, "--version"), end="")
        return 0
    if {"-h", "--help"} & set(arguments):
        print(places.named(HELP).format(usage=places.named(USAGE), options=_options(_output(doctor, "--help"))))
        return 0
    parser = Parser(USAGE, None)
    parser.repeatable("--conf", "KEY=VALUE", "")
    options, others = parser.parse_known_args(arguments)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    contract = _output(doctor, "--version").partition("(contract ")[2].partition(")")[0]
    # In memory: there may be no folder for temporary files, and then the report says so.
    findings = os.memfd_create("findings")
    os.write(findings, _check_spark(contract, options).encode())
    command = [doctor, *others, "--findings", f"/proc/self/fd/{findings}"]
    return subprocess.run(command, pass_fds=[findings], check=False).returncode


# What a JVM writes to stderr by itself.
_OF_THE_JVM = ("WARNING", "Picked up ", "NOTE: Picked up ")


def _output(doctor, option):
    return subprocess.run([doctor, option], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


def _options(text):
    """The options in the C program's help, but for --findings, by which it gets the findings of this command."""
    options = text[text.index("\n  --") + 1 :].partition("\n\n")[0]
    return re.sub(r"^  --findings.*(\n {3,}.*)*\n", "", options, flags=re.MULTILINE)


def _check_spark(contract, options):
    """What the JVM finds, one finding a line: STATUS, CHECK, TEXT and FIX, with tabs between them."""
    unchecked = "the Spark side was not checked"
    try:
        command, environment = Spark().program("supply.tools.Doctor", "local[1]", options.conf, [contract])
    except Failure as failure:
        return f"skipped\tspark\t{unchecked}\t{failure}\n"
    if not os.environ.get("JAVA_HOME") and not shutil.which("java"):
        return f"skipped\tspark\t{unchecked}: there is no java on PATH\tinstall Java 17, or set JAVA_HOME\n"
    fix = "does SPARK_HOME have a Spark, and JAVA_HOME a Java, that docs/INSTALL.md names?\n"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT, **ties()
        )
    except subprocess.TimeoutExpired:
        return f"failed\tspark\tspark-submit did not end within {TIMEOUT} s\t{fix}"
    # A JVM prints what JDK_JAVA_OPTIONS asks for, too.
    found = "".join(line for line in done.stdout.splitlines(keepends=True) if line.count("\t") == 3)
    if done.returncode == 0:
        return found
    said = next((line for line in done.stderr.splitlines() if not line.startswith(_OF_THE_JVM)), "").replace("\t", " ")
    return f"{found}failed\tspark\tspark-submit ended with status {done.returncode}: {said}\t{fix}"
