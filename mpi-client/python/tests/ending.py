"""How the tests end, and how they end mpirun; and where it leaves what it could not remove."""

import os
import signal
import subprocess


def end_in_order():
    """SIGTERM ends these tests as Ctrl-C does: fixtures remove what they have made. Forked children it ends at once."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def mask(how):
        signal.pthread_sigmask(how, {signal.SIGTERM})

    def in_child():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        mask(signal.SIG_UNBLOCK)

    # Python drops a signal that reaches the child before it has the default action.
    os.register_at_fork(
        before=lambda: mask(signal.SIG_BLOCK), after_in_parent=lambda: mask(signal.SIG_UNBLOCK), after_in_child=in_child
    )


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
