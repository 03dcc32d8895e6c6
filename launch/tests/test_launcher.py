"""The command line of mpirun."""

import os
import shutil
import subprocess
import sys

import pytest
from spark_supplier.launch import last_words
from spark_supplier.launch.command import Failure
from spark_supplier.launch.mpi import Launcher

from processes import ran
from waiting import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")


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
