"""A file system that is full soon."""

import contextlib
import os
import subprocess

from waiting import wait_until


class NotMounted(Exception):
    """This user may not mount a file system."""


@contextlib.contextmanager
def mounted(folder, size):
    """A new folder, with a file system of this size (as mount takes it). Raises NotMounted."""
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700,uid={os.getuid()}", "supply-test", folder]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotMounted(f"this user may not mount a file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # A killed task may still have a file open there.
        wait_until(lambda: subprocess.run(["umount", folder], capture_output=True, check=False).returncode == 0)


def fill(folder):
    with open(folder / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"\0" * 4096):
            pass
