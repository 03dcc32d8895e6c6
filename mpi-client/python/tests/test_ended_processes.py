"""How a run names the end of a rank's process."""

import pytest
from spark_supplier.driver import failures
from spark_supplier.driver.mpirun_launcher import MpirunEnded
from spark_supplier.node.messages import RankEnded

MPICH_SIGNAL = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"


@pytest.mark.parametrize(
    "status, text, how",
    [
        (3, "", "exited with status 3 before it returned a result"),
        (255, "", "exited with status 255 before it returned a result"),
        (139, "", "was killed by SIGSEGV"),
        (165, "", "was killed by signal 37"),
        (9, MPICH_SIGNAL, "was killed by SIGKILL (perhaps because the node or its container ran out of memory)"),
    ],
    ids=["a status", "exit(-1)", "a signal", "a real-time signal", "a signal with MPICH"],
)
def test_the_end_of_a_rank_by_the_status_of_mpirun(status, text, how):
    cause = failures.of_process(RankEnded(1, "node-1", MpirunEnded(status, text).rank_status, False))
    assert str(cause.error) == f"rank 1 on node-1 {how}"
