"""supply-stat on pairs that a real Supplier feeds."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import termios

import databases
import headers
from ending import end_mpirun
from places import PROGRAMS
from processes import ran
from waiting import wait_until

STAT = PROGRAMS / "supply-stat"


def look(pairs):
    done = ran(STAT, "--json", *pairs.options())
    assert done.stderr == ""
    return json.loads(done.stdout)["pairs"]


@contextlib.contextmanager
def on_a_terminal(command, rows, columns):
    """Runs a program on a terminal of that size. Yields a function that returns what the program has written so far."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.set_blocking(ours, False)
    written = bytearray()

    def read():
        with contextlib.suppress(BlockingIOError, OSError):
            while part := os.read(ours, 65536):
                written.extend(part)
        return written.decode()

    try:
        yield read
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(ours)


def test_a_run_whose_first_rank_stands_still(supplier, make_pairs, start_ranks, tmp_path):
    entries = databases.write(tmp_path / "lmdb", databases.numbered(300))
    pairs = make_pairs(2, ring="64KiB", block="16KiB")
    ranks = start_ranks(pairs, 2, timeout=60, arguments=["--count"])
    for rank in ranks:
        wait_until(lambda: headers.read(pairs.mapped_file(rank.local_rank), "version"))
    ranks[0].process.send_signal(signal.SIGSTOP)
    run = supplier.start(entries, pairs, "--epochs", 30, ranks=2, timeout=60)
    wait_until(lambda: headers.read(pairs.mapped_file(0), "published") == 4)
    wait_until(lambda: headers.read(pairs.mapped_file(1), "end_seen") or not pairs.mapped_file(1).exists())
    first, second = look(pairs)
    assert (first["state"], first["waiting"], first["blocks_in_ring"], first["ring_blocks"]) == (
        "supplying",
        "task",
        4,
        4,
    )
    assert (first["rank_pid"], first["task_attempt"], first["epoch"]) == (ranks[0].process.pid, 0, 0)
    assert (first["epoch_elements"], first["epoch_steps"]) == (150, None)
    assert 0 < first["elements"] < 9000 and first["elements_per_second"] == 0
    assert b"java" in pathlib.Path(f"/proc/{first['task_pid']}/cmdline").read_bytes()
    assert first["waiting_seconds"] >= 1, "it checks twice, a second apart"
    assert second["state"] in ("absent", "ended")

    # The table is redrawn in place, and is never larger than the terminal.
    with on_a_terminal([STAT, "--interval", "0.05", *pairs.options()], rows=3, columns=40) as read:
        wait_until(lambda: read().count("\x1b[H") > 3)
        *pages, _ = read().split("\x1b[H")[1:]
    for page in pages:
        lines = page.replace("\x1b[J", "").replace("\x1b[K", "").split("\r\n")
        assert lines.pop() == ""
        assert len(lines) == 2 and all(len(line) <= 40 for line in lines), lines
        assert lines[0].startswith("PAIR  STATE") and "2 pairs more" in lines[1]

    ranks[0].process.send_signal(signal.SIGCONT)
    run.result()
    assert [rank.finish() for rank in ranks] == [0, 0]


def test_a_live_exchange(supplier, make_pairs, tmp_path):
    """Two ranks exchange all elements. One stands still in the middle, so the numbers of both stay as they are."""
    # exchange-ids finds an element's number in its height and in its key.
    elements = [(b"%d" % n, databases.datum(bytes(n), channels=1, height=n, width=1)) for n in range(1, 300)]
    entries = databases.write(tmp_path / "lmdb", elements)
    pairs = make_pairs(2, ring="64KiB", block="16KiB")
    root = [] if os.geteuid() else ["--allow-run-as-root"]
    ranks = [PROGRAMS / "exchange-ids", "all", "4000"]
    environment = {
        **os.environ,
        "SUPPLY_MAPPED_FILES": str(pairs.mapped_files),
        "SUPPLY_NAMED_PIPES": str(pairs.named_pipes),
    }
    mpirun = subprocess.Popen(
        ["mpirun", "-n", "2", "--oversubscribe", *root, *ranks], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        run = supplier.start(entries, pairs, "--epochs", 200, ranks=2, timeout=60)
        wait_until(lambda: headers.read(pairs.mapped_file(1), "released") > 4)
        still = headers.read(pairs.mapped_file(1), "rank_pid")
        assert still
        os.kill(still, signal.SIGSTOP)
        for pair in look(pairs):
            totals = pair["exchange_totals"]
            assert (totals["ranks"], totals["copying_ranks"], totals["forwarded_ranks"]) == (2, 1, 0)
            assert totals["window_bytes"] == 4000 and totals["windows"] <= totals["rounds"] < totals["collectives"]
            assert totals["copied_bytes"] > 0 and totals["sent_bytes"] == 0
            assert totals["gathering_seconds"] > 0 and totals["copying_seconds"] > 0
        table = ran(STAT, *pairs.options()).stdout
        assert table.count("exchange of 2 ranks: copies to 1, sends to 0, through two levels to 0; ") == 2
        os.kill(still, signal.SIGCONT)
        run.result()
        assert mpirun.wait(60) == 0
    finally:
        if mpirun.poll() is None:
            end_mpirun(mpirun)
