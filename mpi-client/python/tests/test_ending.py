"""Tests that are ended leave nothing."""

import pathlib
import signal
import subprocess
import sys

PROGRAM = """
import os, signal, tempfile
from ending import end_in_order

end_in_order()
with tempfile.TemporaryDirectory(dir=FOLDER):
    if (child := os.fork()) == 0:
        signal.pause()
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    signal.pause()
"""


def test_sigterm_ends_tests_in_order(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    program = PROGRAM.replace("FOLDER", repr(str(folder)))
    tests = subprocess.Popen(
        [sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True
    )
    with tests:
        assert tests.stdout is not None and tests.stdout.readline() == f"{-signal.SIGTERM}\n"
        assert list(folder.iterdir())
        tests.terminate()
        assert tests.wait(30) != 0
    assert not list(folder.iterdir())
