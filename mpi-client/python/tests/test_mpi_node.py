"""How a rank that mpirun has started finds Spark's name of its node."""

import platform
import subprocess
import sys

import pytest
from spark_supplier.node.environment import MpiSpec
from spark_supplier.node.mpi_node import _host_of
from spark_supplier.node.run_files import RunFiles

_NODE = platform.node()


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ({"other": ["198.51.100.1"], _NODE: []}, _NODE),
        ({"other": ["198.51.100.1"], f"{_NODE}.cluster.test": []}, f"{_NODE}.cluster.test"),
        ({"other": ["198.51.100.1"], "another-name": ["198.51.100.2", "127.0.0.1"]}, "another-name"),
        ({"198.51.100.1": ["198.51.100.1"], "127.0.0.1": ["127.0.0.1"]}, "127.0.0.1"),
        ({"other": ["198.51.100.1"], "ipv6": ["2001:db8::1"]}, _NODE),
        ({_NODE.upper(): []}, _NODE.upper()),
        ({"[::1]": ["0:0:0:0:0:0:0:1"]}, "[::1]"),
        ({}, _NODE),
    ],
)
def test_a_rank_finds_its_node_by_name_or_address(hosts, expected):
    assert _host_of(hosts) == expected


def test_a_rank_looks_no_name_up():
    # In a process of its own: such a hook stays.
    program = """
import sys
from spark_supplier.node.mpi_node import _host_of

def refuse(event, arguments):
    if event.startswith(("socket.getaddrinfo", "socket.gethostby")):
        sys.exit(f"{event}{arguments}")
    if event == "socket.bind" and not arguments[1][0].replace(".", "").isdigit():
        sys.exit(f"{event}{arguments}")

sys.addaudithook(refuse)
print(_host_of({f"node-{i}.cluster.test": [f"198.51.100.{i}"] for i in range(100)} | {"here": ["127.0.0.1"]}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("here", "")


def test_ranks_of_thousands_of_hosts_get_their_names():
    hosts = {f"worker-{17 * i:06d}.cluster.test": [f"10.{i // 256}.{i % 256}.{7 * i % 256}"] for i in range(5000)}
    spec = MpiSpec(RunFiles("/dev/shm", "run", ("train",), 1, None, None), hosts, dict.fromkeys(hosts, "0,1,2,3"))
    program = (
        "import os; from spark_supplier.node.environment import MpiSpec; print(len(MpiSpec.of(os.environ).spark_hosts))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=spec.environment(), capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "5000\n"
