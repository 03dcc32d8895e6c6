"""A frame whose partitions have its data, and predictions that outlive an executor."""

import pathlib
import subprocess
import sys

import pytest

from supplier_session import prepare_environment, shared_memory

prepare_environment()
for module in ("pyspark", "torch", "pandas"):
    pytest.importorskip(module)

LIMIT_SECONDS, ROWS = 240, 12000


@pytest.mark.long
def test_a_frame_in_its_tasks_is_supplied_and_predictions_outlive_an_executor():
    with shared_memory() as folder:
        done = subprocess.run(
            [sys.executable, str(pathlib.Path(__file__).with_name("frame_program.py")), folder],
            capture_output=True, text=True, timeout=LIMIT_SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"validated {2 * ROWS}\n" in done.stdout
    assert f"predicted {2 * ROWS}\n" in done.stdout
    assert "results: 'number' depends on the order" in done.stderr
