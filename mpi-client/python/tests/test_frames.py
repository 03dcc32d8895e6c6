"""A frame whose partitions have its data, and predictions that outlive an executor."""

import pytest

from supplier_session import printed_by

ROWS = 12000


@pytest.mark.long
def test_a_frame_in_its_tasks_is_supplied_and_predictions_outlive_an_executor(memory):
    printed, errors = printed_by("frame_program.py", memory)
    assert printed.splitlines() == [f"validated {2 * ROWS}", f"predicted {2 * ROWS}"], errors[-3000:]
