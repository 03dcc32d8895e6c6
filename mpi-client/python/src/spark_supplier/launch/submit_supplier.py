"""launch/submit-supplier: submits the Supplier to YARN, with one executor a node that feeds all ranks of its node."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.parse
import uuid

from .command import Failure, Parser, heap_size, number_of
from .processes import Sides, signal_name, ties
from .spark import NO_PERF_DATA, Spark, java

DESCRIPTION = """\
Submits the Supplier to YARN (spark-submit --master yarn --deploy-mode cluster) and waits for its end. The exit status
is the Supplier's; if it is not 0, the last line on stderr says why. A signal (Ctrl-C, SIGTERM) ends the application
first.

All other options are the Supplier's (docs/OPTIONS.md). --lmdb names a path that every node sees, or one in HDFS."""
EPILOG = """
Environment:
  HADOOP_CONF_DIR  the cluster's configuration (required; launch/dev/mini-cluster prints it)
  SPARK_HOME       Spark to use, which is uploaded once (default: as in launch/supplier --help)
  JAVA_HOME        Java to use (default: the java on PATH)
  SPARK_CONF_DIR   Spark's settings (default: as in launch/supplier --help)
"""
# The files that are shipped along, by the names that they get in the folder of each container.
SHIPPED = {"--hosts": "hosts", "--mapped-files": "mapped-files.conf", "--named-pipes": "named-pipes.conf"}

_TAGS = "spark.yarn.tags="
# supply-run gives this command a minute to end.
_ENDING_SECONDS = 50


def main(arguments):
    parser = Parser(
        "launch/submit-supplier EXECUTOR_MEMORY NUM_EXECUTORS EXECUTOR_CORES [--conf KEY=VALUE]... SUPPLIER_OPTION...",
        DESCRIPTION,
        EPILOG,
    )
    memory = "heap of each executor, such as 4g. What the mapped files need is added to it"
    parser.option("memory", "EXECUTOR_MEMORY", memory, heap_size)
    parser.option("executors", "NUM_EXECUTORS", "one for each node of --hosts", number_of("executors"))
    parser.option("cores", "EXECUTOR_CORES", "of each executor: one for each rank of its node", number_of("cores"))
    parser.repeatable("--conf", "KEY=VALUE", "a setting of Spark's; it wins over one that this command makes")
    for option in SHIPPED:
        parser.option(option, "FILE", "as in launch/supplier: a file of this machine, which is shipped along")
    options, others = parser.parse_known_args(arguments)
    given = {option: vars(options)[option[2:].replace("-", "_")] for option in SHIPPED}
    files = {option: _shippable(option, path) for option, path in given.items() if path}
    hadoop = os.environ.get("HADOOP_CONF_DIR")
    if not hadoop:
        raise Failure("HADOOP_CONF_DIR is not set: it names the folder with core-site.xml and yarn-site.xml")
    if not pathlib.Path(hadoop, "core-site.xml").is_file():
        raise Failure(f"HADOOP_CONF_DIR: there is no {hadoop}/core-site.xml")
    spark = Spark()
    environment = spark.environment()
    classes = f"{environment['SPARK_CONF_DIR']}:{hadoop}:{spark.jar}:{spark.home}/jars/*"
    of_jar = [java(), NO_PERF_DATA, "-XX:TieredStopAtLevel=1", "-cp", classes]

    user_conf = [f"--conf={setting}" for setting in options.conf]
    local_files = [f"{option}={path}" for option, path in files.items()]
    # Wrong options are found here, not in a log on the cluster.
    checked = subprocess.run(
        [*of_jar, "supply.tools.Submission", options.memory, spark.home, *user_conf, *local_files, *others],
        env=environment,
        stdout=subprocess.PIPE,
        **ties(),
        check=False,
    )
    if checked.returncode:
        return checked.returncode if checked.returncode > 0 else 128 - checked.returncode
    # YARN keeps an application alive after its submitter has ended. By this tag it is found and ended.
    tag = f"supply-{uuid.uuid4()}"
    conf = [*spark.added_settings, "spark.yarn.maxAppAttempts=1", *_made_settings(checked.stdout), *options.conf]
    conf.append(f"{_TAGS}{','.join([*_tags(options.conf, spark), tag])}")
    command = [spark.submit, "--class", "supply.lmdb.Supplier", "--master", "yarn", "--deploy-mode", "cluster"]
    command += ["--name", "Supplier", "--num-executors", options.executors]
    command += ["--executor-memory", options.memory, "--executor-cores", options.cores]
    if files:
        command += ["--files", ",".join(f"{_uri(path)}#{SHIPPED[option]}" for option, path in files.items())]
    command += [word for setting in conf for word in ("--conf", setting)]
    command += [spark.jar, *(f"{option}={SHIPPED[option]}" for option in files), *others]
    sides = Sides()
    submitter = sides.start("submitter", command, relay="stderr", env=environment)
    if sides.wait() == "signal":
        # Until it is killed it could still submit the application.
        sides.end(0)
        _end_application([*of_jar, "supply.tools.EndApplication", tag], environment, tag)
        return 128 + sides.signal
    sides.end()
    if submitter.status == 0:
        return 0
    status, reason = _reason(submitter)
    # As the Supplier itself says it when it runs on this machine.
    print(f"supplier: error: {reason}", file=sys.stderr)
    return status


def _end_application(command, environment, tag):
    """A second Ctrl-C, or too long a wait for YARN, leaves the application running."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        subprocess.run(command, env=environment, timeout=_ENDING_SECONDS, check=False)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        print(
            "submit-supplier: the application may still run: find it by its tag (yarn application -list -appTags "
            f"{tag}) and end it (yarn application -kill ID)",
            file=sys.stderr,
        )


def _made_settings(said):
    """A JVM prints what JDK_JAVA_OPTIONS asks for, too."""
    return [line for line in said.decode().splitlines() if line.startswith("spark.")]


def _tags(conf, spark):
    """The user's tags, or those of the site. The last setting wins, as in spark-submit."""
    given = [setting[len(_TAGS) :] for setting in conf if setting.startswith(_TAGS)][-1:]
    of_site = spark.setting(_TAGS[:-1])
    return given or ([of_site] if of_site else [])


def _shippable(option, file):
    if not os.access(file, os.R_OK):
        raise Failure(f"{option}: {file} cannot be read")
    path = os.path.realpath(file)
    # Spark cuts its list of files at commas, and takes the others for a pattern.
    if re.search(r"[],[*?{}\\]", path):
        raise Failure(f"{option}: Spark cannot ship {path}, with one of , * ? [ ] {{ }} \\ in it: name another")
    return path


def _uri(path):
    """To Spark a URI with a space is the name of another file."""
    return "file://" + urllib.parse.quote(os.fsencode(path))


def _reason(submitter):
    """The Supplier's exit status and message, or what YARN says of an application that could throw nothing."""
    if submitter.killed:
        return submitter.status, f"spark-submit was killed ({signal_name(submitter.status)})"
    output = "\n".join(submitter.output.lines())
    found = re.findall("Application diagnostics message: (.*)", output)
    said = found[-1] if found else ""
    thrown = re.search(r"User class threw exception: [A-Za-z.$]*RunFailed: status ([0-9]+): (.*)", said)
    if thrown:
        return int(thrown[1]), thrown[2]
    refused = re.findall(r'Exception in thread "main" [A-Za-z.$]+: (.*)', output)
    if not said and refused:
        return 1, f"the application was not submitted: {refused[-1]}"
    no_words = "the application ended without a message: see its log (yarn logs, launch/dev/mini-cluster logs)"
    return 1, said or no_words
