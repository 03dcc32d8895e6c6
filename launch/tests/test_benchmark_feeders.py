"""The ways of bench/feeders without Spark: each moves the bytes of a file. Nothing is timed."""

import json
import socket
import subprocess
import sys

import pytest

from places import ROOT

BLOCK, BLOCKS, PASSES = 64 << 10, 5, 3
PAGE = 4096


@pytest.fixture(scope="module")
def tcp(tmp_path_factory):
    program, sources = tmp_path_factory.mktemp("programs") / "tcp", ROOT / "bench" / "c"
    options = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-o", program]
    subprocess.run(["cc", *options, sources / "tcp.c", sources / "bench.c", "-lz"], check=True)
    return [program]


@pytest.mark.parametrize("way", ["tcp", "flight", "grpc"])
def test_the_receiver_has_the_bytes_of_each_pass(tcp, tmp_path, way):
    file = tmp_path / "file"
    file.write_bytes(b"".join(i.to_bytes(8, "little") * (PAGE // 8) for i in range(1, BLOCKS * BLOCK // PAGE + 1)))
    program = tcp if way == "tcp" else [sys.executable, ROOT / "bench" / "py" / "stream_ways.py", way]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        sizes = ["127.0.0.1", one.getsockname()[1], BLOCK, BLOCKS * BLOCK, PASSES]
    with subprocess.Popen([*map(str, [*program, "receive", *sizes])], stdout=subprocess.PIPE, text=True) as receiver:
        assert json.loads(receiver.stdout.readline()) == {"listens": True}
        subprocess.run([*map(str, [*program, "send", *sizes, file])], check=True, timeout=60)
        passes = [json.loads(line) for line in receiver.stdout]
    pages = BLOCKS * BLOCK // PAGE
    assert [(one["bytes"], one["sum"]) for one in passes] == [(BLOCKS * BLOCK, pages * (pages + 1) // 2)] * PASSES
