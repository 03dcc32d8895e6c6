"""What a run that ends well prints, with the log levels of a new user."""

import os
import pathlib
import re
import select
import subprocess
import sys
import time

import pytest

from quiet_program import LINES, RANKS, ROWS
from supplier_session import shared_memory

LIMIT_SECONDS = 240
NOT_READ_SECONDS = 12
# Spark and its JVM print this before the program has a session.
OF_SPARK = re.compile(
    r"^WARNING: Using incubator modules: jdk\.incubator\.vector$"
    r"|WARN Utils: (Your hostname, .* resolves to a loopback address|Set SPARK_LOCAL_IP if you need)"
    r"|WARN NativeCodeLoader: Unable to load native-hadoop library"
    r"|WARN Utils: Service '.*' could not bind on port"
    r"|^Setting default log level to \"WARN\"\.$|^Using Spark's default log4j profile:"
    r"|^To adjust logging level use sc\.setLogLevel"
)


@pytest.mark.long
def test_runs_that_end_well_are_quiet_also_if_nobody_reads_for_a_while(tmp_path):
    errors = tmp_path / "stderr"
    with shared_memory(), errors.open("w") as stderr:
        program = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).parent / "quiet_program.py"],
            stdout=subprocess.PIPE, stderr=stderr, text=True, env=dict(os.environ),
        )  # fmt: skip
        assert program.stdout is not None
        select.select([program.stdout], [], [], LIMIT_SECONDS)
        # A rank that has not asked for a batch for stall_timeout is not stuck: its print() waits.
        time.sleep(NOT_READ_SECONDS)
        output, _ = program.communicate(timeout=LIMIT_SECONDS)
    written = errors.read_text()
    assert program.returncode == 0, written
    *printed, rows, returned, predicted = output.splitlines()
    for rank in range(RANKS):
        numbers = [int(line[9:16]) for line in printed if line.startswith(f"[rank {rank}]")]
        assert numbers == list(range(LINES))
    assert len(printed) == RANKS * LINES
    assert (rows, predicted) == (str(ROWS // RANKS), "100")
    assert returned == f"['after a batch', 'at once', 'after a batch', 'at once'] {ROWS}"
    assert [line for line in written.splitlines() if not OF_SPARK.search(line)] == []
