"""launch/supplier: the Supplier alone. The tests start the ranks."""

import os
import signal
import subprocess

import pytest

import databases
import headers
from places import LAUNCH
from processes import ran
from ranks import END_OF_PATIENCE, multiset, one_line
from waiting import wait_until


@pytest.fixture
def start_supplier(tmp_path):
    started = []

    def start(*arguments):
        started.append(
            subprocess.Popen(
                [LAUNCH / "supplier", *map(str, arguments)],
                env={**os.environ, "TMPDIR": str(tmp_path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def entries(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(100))


def test_its_table_is_its_output(start_supplier, make_pairs, start_ranks, entries):
    pairs = make_pairs(2)
    receivers = start_ranks(pairs, 2, timeout=60)
    supplier = start_supplier("--lmdb", entries, *pairs.options(), "--ranks", 2, "--conf", "spark.app.name=test")
    out, _ = supplier.communicate(timeout=END_OF_PATIENCE)
    assert supplier.returncode == 0
    assert [rank.finish() for rank in receivers] == [0, 0]
    assert multiset(receivers) == databases.expected_lines(entries)
    header, *lines = out.splitlines()
    assert header.split()[:4] == ["rank", "host", "partitions", "elements"]
    assert [int(line.split()[0]) for line in lines] == [0, 1]


@pytest.mark.long
def test_a_supplier_that_is_killed(start_supplier, make_pairs, start_rank, entries):
    pairs = make_pairs(1, ring="64KiB")
    # With --count its output does not block it.
    rank = start_rank(pairs, timeout=10, arguments=["--count"])
    wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    rank.process.send_signal(signal.SIGSTOP)  # Its timeout must not include Spark's start.
    supplier = start_supplier("--lmdb", entries, *pairs.options(), "--epochs", 1_000_000)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "published"))
    rank.process.send_signal(signal.SIGCONT)
    supplier.kill()
    assert rank.finish() == 1
    line = one_line(rank)
    assert "the Spark task of pair 0" in line and "has left" in line and "Spark's log" in line


def test_help_names_every_option(start_supplier):
    supplier = start_supplier("--help")
    out, _ = supplier.communicate(timeout=END_OF_PATIENCE)
    assert supplier.returncode == 0
    names = "master conf lmdb partitions ranks epochs seed block-elements mapped-files named-pipes hosts"
    assert [name for name in [*names.split(), "timeout"] if f"--{name}" not in out] == []


def test_no_spark():
    done = ran(LAUNCH / "supplier", SPARK_HOME="/nowhere")
    assert done.returncode == 1
    assert "supplier: error: no Spark in /nowhere" in done.stderr and "make build" in done.stderr
