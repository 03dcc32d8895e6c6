"""mpirun lives as long as the driver's process, whichever thread has started it."""

import queue
import sys
import threading

import pytest
from spark_supplier.driver.mpirun_launcher import Mpirun, MpirunEnded
from spark_supplier.launch.mpi import Launcher

LIMIT_SECONDS = 60
# Says that it runs, and ends when it may.
RANK = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "runs").touch()
while not (folder / "may end").exists():
    time.sleep(0.05)
"""


def test_mpirun_outlives_the_thread_that_starts_it(tmp_path):
    posted: queue.SimpleQueue[object] = queue.SimpleQueue()
    made = []

    def start():
        made.append(Mpirun([*Launcher().command(1), sys.executable, "-c", RANK, str(tmp_path)], {}, posted.put))
        while not (tmp_path / "runs").exists() and posted.empty():
            threading.Event().wait(0.05)

    try:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join(LIMIT_SECONDS)
        (tmp_path / "may end").touch()
        ended = posted.get(timeout=LIMIT_SECONDS)
        assert isinstance(ended, MpirunEnded) and ended.status == 0
    finally:
        for mpirun in made:
            mpirun.stop(3)


def test_a_command_that_cannot_start(monkeypatch):
    command = [*Launcher().command(1), "true"]
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(FileNotFoundError):
        Mpirun(command, {}, lambda ended: None)
