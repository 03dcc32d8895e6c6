"""
The C side, the Python package and whole runs on aarch64: `make test-arm64`.

qemu makes programs ten to thirty times as slow, and emulates system calls. It keeps the memory order of this machine.
The model (proto/model/memory.pml) checks what a real one reorders.
"""

import re

import pytest

from installing import DIGITS, DIGITS_COUNT, ROOT

PROGRAMS = ROOT / "launch" / "tests" / "matrix" / "programs"
# Of the matrix' programs: 10,000 rows, and twice the sum of their numbers.
BACK = "rows=10000 sum=99990000"
EPOCHS = 10
C_PROGRAMS = sorted(
    name
    for file in ("", "mpi/", "documents/")
    for name in re.findall(
        r"^ *supply_test\((\w+)", (ROOT / "mpi-client/tests" / file / "CMakeLists.txt").read_text(), re.MULTILINE
    )
    if name != "name"
)
# Tests of C that qemu cannot run, and why.
NOT_BY_QEMU = {
    "SupplyDoctorTest.AContainerWhoseRanksMayNotCopyFromEachOther": "qemu has no process_vm_readv()",
    "ThreadLimitTest.AControlGroupOfThisMachine": "qemu has a thread of its own, which counts",
    "ThreadLimitTest.OfAUser": "qemu has a thread of its own, which counts",
}


@pytest.mark.parametrize("program", C_PROGRAMS)
def test_c(c_tests, inside, program):
    done = inside(f"exec {c_tests}/{program} --gtest_brief=1 --gtest_filter='-{':'.join(NOT_BY_QEMU)}'")
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]


@pytest.mark.parametrize("test", NOT_BY_QEMU)
def test_c_without_qemu(test):
    pytest.skip(f"{test}: {NOT_BY_QEMU[test]}")


def test_a_dataframe_and_a_stream_to_ranks(python, inside):
    done = inside(f"exec {python} {PROGRAMS}/dataframe.py")
    assert f"rows: {BACK}" in done.stdout and f"stream: {BACK}" in done.stdout, done.stderr[-8000:]


@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_one_call(python, inside, launcher):
    done = inside(f"exec {python} {PROGRAMS}/one_call.py {launcher}")
    assert f"rows: {BACK}" in done.stdout, done.stderr[-8000:]


def test_an_lmdb_to_ranks_that_learn(python, c_tests, inside):
    """The main job, with ranks in C. The library of LMDB in the jar is the one for aarch64."""
    supply = f"{python.parent}/supply-run --ranks 2 --partitions 8 --seed 1 --block-elements 32"
    ranks = f"{c_tests}/train-digits"
    done = inside(f"""
{supply} --lmdb {DIGITS} --epochs {EPOCHS} -- {ranks} --save model
{supply} --lmdb {DIGITS.with_name("test_lmdb")} --epochs 1 -- {ranks} --evaluate model
""")
    assert done.returncode == 0, done.stderr[-8000:]
    training, evaluation = re.findall("^train-digits: .*", done.stdout, re.MULTILINE)
    assert f" elements={EPOCHS * DIGITS_COUNT} " in training + " "
    assert float(re.search(r" accuracy=(\S+)", evaluation)[1]) >= 0.9
