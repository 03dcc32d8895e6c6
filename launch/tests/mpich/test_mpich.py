"""The ranks with MPICH instead of Open MPI: `make test-mpich`, which builds their programs with it."""

import collections
import shutil
import subprocess

import pytest

import databases
from places import BUILD, DIGITS

PROGRAMS = BUILD / "mpi-client-mpich"
TRAIN_DIGITS = PROGRAMS / "train-digits"
MPIRUN = "mpiexec.mpich"

pytestmark = pytest.mark.skipif(
    not (shutil.which(MPIRUN) and shutil.which("mpicc.mpich")),
    reason="no MPICH here (on Debian: apt-get install mpich libmpich-dev)",
)


@pytest.fixture
def entries(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(300))


def test_the_programs_are_built_with_it():
    libraries = subprocess.run(["ldd", TRAIN_DIGITS], capture_output=True, text=True, check=True).stdout
    assert "libmpich" in libraries and "libmpi.so" not in libraries


# These expect what a rank printed in front of MPI_Abort. MPICH's launcher may end before it passes that on.
LAST_WORDS = [
    "ExamplesTest.ACheckpointOfOtherRanksIsRefused",
    "ExamplesTest.AFailureOfSparkEndsEveryRank",
    "ExamplesTest.AnElementThatIsNotADigitIsNamed",
    "ExamplesTest.ArrowColumnsNamesAColumnWithoutNumbers",
]


def test_the_c_tests_that_need_mpi():
    done = subprocess.run(
        [PROGRAMS / "mpi_test", "--gtest_filter=-" + ":".join(LAST_WORDS)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_every_element_once(supply_run, entries):
    """supply-cat does not use MPI: it takes its number from the launcher's environment variables."""
    run = supply_run("--lmdb", entries, "--ranks", 3, "--epochs", 2, MPIRUN=MPIRUN)
    assert run.finish() == 0
    assert collections.Counter(run.lines) == databases.expected_lines(entries, 2)


def test_training(supply_run, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# one node\nlocalhost slots=3\n")
    run = supply_run(
        "--lmdb",
        DIGITS / "train_lmdb",
        "--ranks",
        3,
        "--epochs",
        2,
        "--block-elements",
        32,
        "--hosts",
        hosts,
        program=(TRAIN_DIGITS,),
        MPIRUN=MPIRUN,
    )
    assert run.finish() == 0, run.errors
    assert any(line.startswith("train-digits: ranks=3 epochs=2 elements=2874 ") for line in run.lines)


def test_a_rank_fails(supply_run, entries):
    run = supply_run("--lmdb", entries, "--ranks", 2, program=(TRAIN_DIGITS,), MPIRUN=MPIRUN)
    assert run.finish() == 1
    # From the rank itself or, if MPICH's launcher did not pass it on, from the Supplier, which gets it by the pair.
    assert any("not a digit of 8 x 8 pixels" in line for line in run.errors), run.errors
