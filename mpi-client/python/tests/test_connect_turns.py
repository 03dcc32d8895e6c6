"""Several clients of one server of Spark Connect, which has slots for a run of one of them only."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import pytest
import spark_supplier

from connect_server import connect_server
from supplier_session import shared_memory

PROGRAM = pathlib.Path(__file__).with_name("turns_program.py")
LIMIT_SECONDS = 120


@pytest.fixture(scope="module")
def server():
    # One slot for the rank, and one that starts it.
    with connect_server("local[2]", spark_supplier.jars()) as started:
        yield started.remote


@pytest.fixture
def client(server, tmp_path):
    """A function that starts a client, and returns its process, and one that returns what it has printed."""
    with shared_memory() as folder, contextlib.ExitStack() as ends:

        def start(name, mode):
            output = tmp_path / name
            written = ends.enter_context(output.open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-u", PROGRAM, server, folder, mode], stdout=written, stderr=subprocess.STDOUT
            )
            ends.callback(process.wait)
            ends.callback(process.kill)
            return process, output.read_text

        yield start, pathlib.Path(f"{folder}.open")
        with contextlib.suppress(OSError):
            os.remove(f"{folder}.open")


def await_text(printed, text):
    end = time.monotonic() + LIMIT_SECONDS
    while text not in printed() and time.monotonic() < end:
        time.sleep(0.1)
    assert text in printed()


@pytest.mark.long
def test_a_run_waits_for_the_run_of_another_client(client):
    start, gate = client
    one, of_one = start("one", "gate")
    await_text(of_one, "runs")
    other, of_other = start("other", "gate")
    await_text(of_other, "other runs of this session, or of other clients of its server")
    gate.touch()
    for process, printed in ((one, of_one), (other, of_other)):
        assert process.wait(LIMIT_SECONDS) == 0 and "end" in printed(), printed()


@pytest.mark.long
def test_ranks_that_wait_for_a_call_yield_to_another_client(client):
    start, gate = client
    one, of_one = start("one", "warm")
    await_text(of_one, "first")
    other, of_other = start("other", "warm")
    await_text(of_other, "first")
    gate.touch()
    for process, printed in ((one, of_one), (other, of_other)):
        assert process.wait(LIMIT_SECONDS) == 0 and "end" in printed(), printed()
    assert "others" in of_one()
