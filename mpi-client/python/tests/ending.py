"""How the tests end mpirun."""

import subprocess


def end_mpirun(mpirun):
    """With SIGTERM mpirun ends its processes, too. After SIGKILL it would leave them."""
    mpirun.terminate()
    try:
        mpirun.wait(60)
    except subprocess.TimeoutExpired:
        mpirun.kill()
        mpirun.wait()
        raise
