"""The command line of mpirun for ranks with feeders."""

import os
import shutil
import subprocess
import sys

import pytest
from spark_supplier.launch import config_files, last_words, places
from spark_supplier.launch.command import Failure
from spark_supplier.launch.mpi import Launcher

from processes import ran
from waiting import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")


@pytest.fixture
def hosts(tmp_path):
    """Writes a host file, and returns its path."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def printing_feeder(tmp_path, monkeypatch):
    """A feeder that prints a variable."""
    feeder = tmp_path / "supply-feeder"
    feeder.write_text("#!/bin/sh\necho feeder $GREETING\n")
    feeder.chmod(0o755)
    monkeypatch.setattr(places, "program", lambda name: feeder)


def test_a_variable_of_the_user_reaches_feeders_and_ranks(hosts, printing_feeder, monkeypatch):
    # mpirun's own environment does not have it.
    monkeypatch.setenv("MPIRUN", "mpirun -x GREETING=hello")
    nodes = hosts("hosts", "localhost slots=2\n")
    command, feeder = Launcher().commands(2, nodes, nodes, config_files.exported())
    environment = {**os.environ, "SUPPLY_MAPPED_FILES": "m", "SUPPLY_NAMED_PIPES": "n", "SUPPLY_TIMEOUT": "600"}
    environment.pop("GREETING", None)
    words = [*command, *feeder, "sh", "-c", "echo rank $GREETING"]
    output = subprocess.check_output(words, env=environment, text=True, timeout=60)
    assert sorted(output.splitlines()) == ["feeder hello", "rank hello", "rank hello"]


def test_each_side_of_the_colon_exports_the_variables(hosts, printing_feeder, monkeypatch):
    """On this node mpirun's environment reaches all processes, on others only what is exported."""
    monkeypatch.setenv("MPIRUN", "mpirun")
    monkeypatch.setenv("SUPPLY_RESULTS_FOLDER", "/results")
    nodes = hosts("hosts", "localhost slots=2\n")
    command, feeder = Launcher().commands(2, nodes, nodes, config_files.exported(["MORE"]))

    def exported(words):
        return {name for option, name in zip(words, words[1:]) if option == "-x"}

    names = {"SUPPLY_MAPPED_FILES", "SUPPLY_NAMED_PIPES", "SUPPLY_TIMEOUT", "SUPPLY_RESULTS_FOLDER", "MORE"}
    assert names <= exported(command)
    assert names <= exported(feeder[feeder.index(":") :])


@pytest.mark.parametrize(
    "text, ranks",
    [
        ("a slots=3\nb slots=3\nc slots=2\n", 8),
        ("a slots=4\nb slots=4\n", 8),
        ("a slots=4\nb slots=8\n", 8),
        ("a slots=8\n", 4),
        ("a\nb\nc\n", 2),
    ],
    ids=["uneven", "even", "more than are needed", "one node", "more feeders than ranks"],
)
def test_slots_that_are_the_pairs_of_the_feeders(hosts, printing_feeder, text, ranks):
    file = hosts("hosts", text)
    command, _ = Launcher().commands(ranks, file, file)
    assert command[command.index("-n") + 1] == str(text.count("\n"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("a slots=8\nb slots=8\n", "a has slots=8, and its feeder opens 4 of 8 pairs: write slots=4"),
        ("a slots=2\nb slots=3\nc slots=3\n", "a has slots=2, and its feeder opens 3 of 8 pairs: write slots=3"),
        ("a slots=3\nb slots=3\nc\n", "c has slots=1, and its feeder opens 2 of 8 pairs: write slots=2"),
    ],
)
def test_slots_that_are_not_the_pairs_of_the_feeders(hosts, printing_feeder, text, words):
    file = hosts("hosts", text)
    with pytest.raises(Failure) as raised:
        Launcher().commands(8, file, file)
    assert str(raised.value) == f"{file}: {words}"


def test_mpirun_is_split_as_a_shell_does(monkeypatch, tmp_path):
    folder = tmp_path / "my mpi"
    folder.mkdir()
    (folder / "mpirun").symlink_to(shutil.which("mpirun"))
    monkeypatch.setenv("MPIRUN", f"'{folder}/mpirun' -x 'GREETING=good morning'")
    command = [*Launcher().command(1), "sh", "-c", "echo rank $GREETING"]
    assert ran(*command).stdout == "rank good morning\n"


@pytest.mark.parametrize(
    ("mpirun", "words"),
    [
        ("no-such-mpirun --verbose", "there is no 'no-such-mpirun' on PATH: install Open MPI or MPICH, or set MPIRUN"),
        ("mpirun -x 'A=b", "MPIRUN is 'mpirun -x 'A=b', which no shell could split: No closing quotation"),
        ("{tmp}/of another machine", "'{tmp}/of --version' does not start: Exec format error"),
        ("true", "'true' is neither Open MPI's mpirun nor MPICH's mpiexec: name one of them in MPIRUN"),
    ],
    ids=["missing", "quotation", "format", "other"],
)
def test_a_mpirun_that_is_none(monkeypatch, tmp_path, mpirun, words):
    (tmp_path / "of").write_bytes(b"\x7fELF, but no more")
    (tmp_path / "of").chmod(0o755)
    monkeypatch.setenv("MPIRUN", mpirun.format(tmp=tmp_path))
    with pytest.raises(Failure) as raised:
        Launcher()
    assert str(raised.value).startswith(words.format(tmp=tmp_path))


# Writes 4 MiB, waits until it may continue, and says why it fails.
TALKATIVE = """
import sys
for _ in range(4 << 10):
    print("x" * 1023, file=sys.stderr)
print("written", flush=True)
sys.stdin.readline()
sys.exit("no memory")
"""


def test_what_ranks_write_to_stderr_does_not_grow(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIRUN", "mpirun")
    launcher = Launcher()
    options, folder = launcher.files_of_ranks(tmp_path, 1)
    if folder is None:
        pytest.skip("this mpirun writes no files of ranks")
    environment = {**os.environ, "SUPPLY_MAPPED_FILES": "m", "SUPPLY_NAMED_PIPES": "n", "SUPPLY_TIMEOUT": "600"}
    command = [*launcher.command(1), *options, sys.executable, "-c", TALKATIVE]
    files = last_words.StderrFiles(folder, may_trim=True)
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ranks:
        assert ranks.stdin is not None and ranks.stdout is not None and ranks.stderr is not None
        # Otherwise the pipe would fill.
        lines = [ranks.stderr.readline().rstrip() for _ in range(4 << 10)]
        assert ranks.stdout.readline() == "written\n"
        (file,) = folder.glob("**/stderr")
        wait_until(lambda: file.stat().st_size == 4 << 20)
        files.trim()
        assert file.stat().st_blocks == 0
        output, errors = ranks.communicate("\n", timeout=60)
    assert file.stat().st_blocks * 512 < 1 << 16
    lines += errors.splitlines()
    assert {"x" * 1023, "no memory"} <= files.lines()
    assert last_words.of_ranks(lines, files, ranks.returncode) == "no memory"


def test_the_files_of_the_user_are_left_alone(tmp_path):
    file = tmp_path / "1" / "rank.0" / "stderr"
    file.parent.mkdir(parents=True)
    file.write_text("x" * (4 << 20))
    last_words.StderrFiles(tmp_path, may_trim=False).trim()
    assert file.stat().st_size == 4 << 20
