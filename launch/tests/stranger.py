"""What a user can do who has no business with a run: a program that root starts, and the call that starts it.

usage: stranger.py FOLDER PATH... [--processes PID...]

Tries all that could read or disturb the files and processes, and prints a line for each attempt that succeeds. The
paths are named by who knows them all: a stranger who cannot list a folder may have guessed what is in it. FOLDER is the
stranger's own.
"""

import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

AS_STRANGER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--")
END_OF_PATIENCE = 60


def of_path(own, path):
    """Attempts on a name, by what they are called."""
    if os.path.isdir(path) and not os.path.islink(path):
        yield "list", lambda: os.listdir(path)
    else:
        # Without O_NONBLOCK, a pipe would be waited for.
        yield "read", lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        yield "write", lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        yield "connect to", lambda: socket.socket(socket.AF_UNIX).connect(path)
    yield "make a file in", lambda: os.close(os.open(f"{path}/stranger", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    yield "make a link in", lambda: os.symlink("/etc/passwd", f"{path}/stranger-link")
    yield "chmod", lambda: os.chmod(path, 0o777)
    yield "link", lambda: os.link(path, f"{own}/{len(os.listdir(own))}")
    yield "rename", lambda: os.rename(path, f"{path}.stranger")
    yield "remove", lambda: os.unlink(path)
    yield "remove the folder", lambda: os.rmdir(path)


def of_process(pid):
    """Attempts on a process."""
    for name in ("environ", "mem", "maps"):
        yield f"read {name} of", lambda name=name: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
    yield "list files of", lambda: [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    yield "signal", lambda: os.kill(int(pid), signal.SIGCONT)


def succeeds(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True


def main(own, *words):
    split = words.index("--processes") if "--processes" in words else len(words)
    done = [
        f"{what} {name}"
        for names, attempts in ((words[:split], functools.partial(of_path, own)), (words[split + 1 :], of_process))
        for name in names
        for what, attempt in attempts(name)
        if succeeds(attempt)
    ]
    print(json.dumps(done))


def everything_in(folders):
    """The folders and every path in them."""
    walks = [walk for folder in folders for walk in os.walk(folder)]
    return [
        os.path.join(*path) for folder, _, files in walks for path in ((folder,), *((folder, name) for name in files))
    ]


def attempts_that_succeed(folders=(), processes=()):
    """Only root can ask. Files that come and go meanwhile are no matter."""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as own:
        shutil.chown(own, "nobody", "nogroup")
        words = [own, *everything_in(folders), "--processes", *map(str, processes)]
        return json.loads(
            subprocess.run(
                [*AS_STRANGER, "/usr/bin/python3", "-", *words],
                # The stranger may not be able to read this file.
                input=pathlib.Path(__file__).read_bytes(),
                stdout=subprocess.PIPE,
                check=True,
                timeout=END_OF_PATIENCE,
            ).stdout
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
