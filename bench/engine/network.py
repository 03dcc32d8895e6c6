"""Two network namespaces of this machine with a cable between them."""

import contextlib
import os
import socket
import subprocess
import sys
from typing import NamedTuple

_INSIDE = "SUPPLY_BENCH_NAMESPACE"
_SPARK, _RANK = "10.213.7.1", "10.213.7.2"


class Network(NamedTuple):
    """The addresses of both sides, what is between them, and the words before a command of the rank's side."""

    spark: str
    rank: str
    name: str
    at_rank: list


def enter():
    """Continues in a network namespace of this benchmark's own, if that is possible."""
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if _INSIDE in os.environ:
        return
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run([*unshare, "unshare", "--net", "ip", "link"], capture_output=True).returncode == 0:
            os.environ[_INSIDE] = "yes"
            os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


@contextlib.contextmanager
def made():
    """Yields the Network: a cable (veth) to a second namespace; without a namespace of our own, the loopback."""
    if _INSIDE not in os.environ:
        print("bench: no network namespaces, which need root or user namespaces: over the loopback", file=sys.stderr)
        yield Network("127.0.0.1", "127.0.0.1", "the loopback", [])
        return
    command = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            holder.stdout.readline()
            at_rank = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
            _ip(f"link add bench-spark type veth peer name bench-rank netns {holder.pid}")
            for before, device, address in (([], "bench-spark", _SPARK), (at_rank, "bench-rank", _RANK)):
                for words in ("link set lo up", f"addr add {address}/30 dev {device}", f"link set {device} up"):
                    _ip(words, before)
            yield Network(_SPARK, _RANK, "a cable between two network namespaces", at_rank)
        finally:
            holder.kill()


def free_port(address):
    with socket.socket() as one:
        one.bind((address, 0))
        return one.getsockname()[1]


def _ip(words, before=()):
    subprocess.run([*before, "ip", *words.split()], check=True)
