"""A process that does one command after another, as they come on its stdin."""

import subprocess

# From the end of the commands to the end of the process.
LIMIT_SECONDS = 30


def end(process):
    """Tells it that no command follows, and sees to it that it ends."""
    process.stdin.close()
    try:
        process.wait(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
