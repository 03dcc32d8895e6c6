"""How the tests end mpirun, and where it leaves what it could not remove."""

import subprocess


def memory_in(folder):
    """Variables with which a killed mpirun leaves the memory that its ranks share in this folder, which is on tmpfs."""
    return {"OMPI_MCA_btl_vader_backing_directory": str(folder)}


def end_mpirun(mpirun):
    """With SIGTERM mpirun ends its processes, too. After SIGKILL it would leave them."""
    mpirun.terminate()
    try:
        mpirun.wait(60)
    except subprocess.TimeoutExpired:
        mpirun.kill()
        mpirun.wait()
        raise
