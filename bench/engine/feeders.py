"""A rank elsewhere, which gets Spark's blocks over TCP, beside other ways of the same bytes through the same cable."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

from engine import data, machine, network, quiet
from engine.figures import Table, size_text, spread, spread_text
from engine.machine import BenchError
from engine.spark import PythonSpark

RAW, OURS, TLS, FLIGHT, GRPC = "raw TCP", "rank elsewhere", "the same with TLS", "Arrow Flight", "gRPC"
WAYS = (RAW, OURS, TLS, FLIGHT, GRPC)
BLOCKS = {"1m": 1 << 20, "64k": 64 << 10}
# By the name in the figure.
RATIOS = {"ratio": (OURS, RAW), "vs_flight": (OURS, FLIGHT), "vs_grpc": (OURS, GRPC), "tls": (TLS, OURS)}
# Of the LMDB: an element fits a block of 64 KiB, and 17 fit one of 1 MiB.
SHAPE = (1, 240, 256)
ELEMENT_BYTES = 240 * 256
# Over the data. The first one is not timed.
PASSES = 3
FIRST_ROWS = 64
KEY = "of the benchmark"


class Place(NamedTuple):
    """What all ways have: the network, the LMDB and its tally, and the first `bytes` of its file with their sum."""

    network: network.Network
    lmdb: pathlib.Path
    tally: dict
    bytes: int
    sum: int
    timeout: float


class Process:
    """A side of a connection. It prints lines of JSON."""

    def __init__(self, command, timeout, **environment):
        self._timeout = timeout
        words = [*map(str, command)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.pid = self._process.pid

    def answer(self):
        name = " ".join(self._process.args)
        line = machine.read_line(self._process, self._process.stdout, self._timeout, name)
        if not line:
            raise BenchError(f"{name} ended with status {self._process.wait()}: its message stands above")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if failure else self._timeout)
        self._process.kill()
        self._process.communicate()


class Served(PythonSpark):
    """Spark that serves ranks at this address."""

    def __init__(self, address, is_tls):
        port, tls = network.free_port(address), str(is_tls).lower()
        super().__init__("feeders_driver.py", address, port, tls, environment={"SPARK_LOCAL_IP": address})
        self._hub = f"supply{'s' if is_tls else ''}://{address}:{port}"
        self._runs = 0

    @contextlib.contextmanager
    def rank(self, place, block, **what):
        """Begins a write, and yields its rank. Ends when both have ended."""
        # A rank that comes by an old name may still hear that its run has ended.
        self._runs += 1
        run = f"bench-{self._runs}"
        self.process.stdin.write(json.dumps({**what, "ranks": 1, "serve": run, "serve-secret": KEY}) + "\n")
        self.process.stdin.flush()
        program = [*place.network.at_rank, machine.program("bench-linked-rank"), block]
        connect = {"SUPPLY_CONNECT": f"{self._hub}/{run}", "SUPPLY_KEY": KEY, "RANK": "0", "WORLD_SIZE": "1"}
        with Process(program, place.timeout, **connect) as rank:
            yield rank
            self.answer()


def used(pids):
    """Processor seconds of these processes and their descendants, and the bytes that they have written to a disk."""
    written = 0
    for one in (one for pid in pids for one in machine.tree(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            text = pathlib.Path(f"/proc/{one}/io").read_text(encoding="utf-8")
            written += int(machine.first_match(r"^write_bytes: (\d+)$", text))
    return sum(map(machine.processor_seconds, pids)), written


def passes_of(receiver, pids, written, tallies):
    """Times all passes but the first. tallies: what the passes must print, and all must print the same sum."""
    passes = [receiver.answer()]
    seconds, _ = used(pids)
    passes += [receiver.answer() for _ in tallies[1:]]
    seconds_after, written_after = used(pids)
    moved = sum(one["bytes"] for one in passes[1:])
    wrong = [
        f"pass {number}: {key} {one[key]}, not {value}"
        for number, (one, tally) in enumerate(zip(passes, tallies))
        for key, value in {"sum": passes[0]["sum"], **tally}.items()
        if one[key] != value
    ]
    return {
        "gb_s": moved / (passes[-1]["at"] - passes[0]["at"]),
        "cpu_s_gb": (seconds_after - seconds) / moved * 1e9,
        "written": written_after - written,
        "wrong": wrong,
    }


def streamed(place, block, *program):
    """One way without Spark."""
    sizes = [place.network.rank, network.free_port(place.network.spark), block, place.bytes, PASSES]
    with Process([*place.network.at_rank, *program, "receive", *sizes], place.timeout) as receiver:
        receiver.answer()
        with Process([*program, "send", *sizes, place.lmdb / "data.mdb"], place.timeout) as sender:
            return passes_of(
                receiver, [receiver.pid, sender.pid], 0, [{"bytes": place.bytes, "sum": place.sum}] * PASSES
            )


def supplied(place, block, spark):
    _, written = used([spark.process.pid])
    with spark.rank(place, block, do="lmdb", lmdb=str(place.lmdb), epochs=PASSES, partitions=1) as rank:
        rank.answer()
        # CRCs are computed in the first pass alone.
        later = {**place.tally, "crc_sum": 0}
        return passes_of(rank, [spark.process.pid, rank.pid], written, [place.tally] + [later] * (PASSES - 1))


def first_batch(place, block, spark):
    """From the first row of Spark to the first batch of the rank."""
    with spark.rank(place, block, do="frame", rows=FIRST_ROWS, row_bytes=ELEMENT_BYTES) as rank:
        first, received = rank.answer(), rank.answer()["elements"]
    wrong = [] if received == FIRST_ROWS else [f"{received} rows, not {FIRST_ROWS}"]
    return {"seconds": (first["first"] - first["made"]) / 1e9, "wrong": wrong}


def aes_gb_s():
    """What OpenSSL encrypts on one core, in records of 16 KiB."""
    command = ["openssl", "speed", "-evp", "aes-256-gcm", "-bytes", "16384", "-seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(re.search(r"([0-9.]+)k\s*$", done.stdout)[1]) / 1e6


@contextlib.contextmanager
def places(data_bytes, timeout):
    import numpy

    lmdb = data.make_lmdb(*SHAPE, data_bytes // ELEMENT_BYTES)
    total = data_bytes // BLOCKS["1m"] * BLOCKS["1m"]
    pages = numpy.memmap(lmdb / "data.mdb", numpy.uint64, "r", shape=(total // 4096, 4096 // 8))
    with network.made() as cable:
        tally = data.tally_lmdb(lmdb)
        yield Place(cable, lmdb, tally, total, int(pages[:, 0].sum(dtype=numpy.uint64)), timeout)


def measure(data_bytes, rounds, warm_up, timeout, results):
    with (
        places(data_bytes, timeout) as place,
        Served(place.network.spark, is_tls=False) as spark,
        Served(place.network.spark, is_tls=True) as spark_tls,
    ):
        in_python = (sys.executable, machine.ROOT / "bench" / "py" / "stream_ways.py")
        ways = {
            RAW: lambda block: streamed(place, block, machine.program("bench-tcp")),
            OURS: lambda block: supplied(place, block, spark),
            TLS: lambda block: supplied(place, block, spark_tls),
            FLIGHT: lambda block: streamed(place, block, *in_python, "flight"),
            GRPC: lambda block: streamed(place, block, *in_python, "grpc"),
        }

        def one_round(number):
            one = {"first": first_batch(place, BLOCKS["1m"], spark), "aes": aes_gb_s()}
            results.case({"way": "first batch", "round": number}, one["first"])
            for way, block in quiet.turns([(way, block) for block in BLOCKS.values() for way in ways], number):
                one[way, block] = ways[way](block)
                results.case({"way": way, "block_bytes": block, "round": number}, one[way, block])
            return one

        add(place, quiet.rounds(warm_up, rounds, one_round), results)


def add(place, rounds, results):
    """Adds the table and the figures."""

    def ratio(block, way, other):
        return spread([one[way, block]["gb_s"] / one[other, block]["gb_s"] for one in rounds])

    def figure(key, values):
        results.figure(f"feeders_{key}", {"ratio": values, "disturbed": rounds.disturbed})

    table = Table(
        f"A rank elsewhere: {size_text(place.bytes)} in each pass, through {place.network.name}, median (min–max)",
        ["block", "way", "GB/s", "× raw TCP", "× Arrow Flight", "processor s/GB, both sides", "bytes to disk"],
    )
    for name, block in BLOCKS.items():
        for way in WAYS:
            of = {key: [one[way, block][key] for one in rounds] for key in ("gb_s", "cpu_s_gb", "written")}
            speeds = (spread(of["gb_s"]), ratio(block, way, RAW), ratio(block, way, FLIGHT), spread(of["cpu_s_gb"]))
            table.add(size_text(block), way, *map(spread_text, speeds), max(of["written"]))
        for key, (way, other) in RATIOS.items():
            figure(f"{key}_{name}", ratio(block, way, other))
        figure(f"processor_s_gb_{name}", spread([one[OURS, block]["cpu_s_gb"] for one in rounds]))
    results.table(table)
    figure("first_batch_s", spread([one["first"]["seconds"] for one in rounds]))
    figure("tls_vs_aes", spread([one[TLS, BLOCKS["1m"]]["gb_s"] / one["aes"] for one in rounds]))
    figure("aes_gb_s", spread([one["aes"] for one in rounds]))
    results.value("feeders_disk_bytes", max(one[OURS, block]["written"] for one in rounds for block in BLOCKS.values()))
