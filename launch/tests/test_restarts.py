"""Runs that launch/supply-run --max-restarts starts again."""

import os
import re
import signal
import subprocess

import pytest
from spark_supplier.launch.restarts import Restarts

from layout import put
from pairs import Pairs
from places import DIGITS, PROGRAMS, ROOT
from waiting import wait_until

IMAGES, EPOCHS = 1437, 3


@pytest.fixture
def train(supply_run, tmp_path):
    """Starts a training of the digits with a checkpoint every 5 steps, whose ranks stop in the given all-reduces."""
    library = tmp_path / "stop_at_step.so"
    subprocess.run(
        ["mpicc", "-shared", "-fPIC", ROOT / "launch" / "tests" / "stop_at_step.c", "-o", library], check=True
    )

    def start(name, *stops):
        options = ("--lmdb", DIGITS / "train_lmdb", "--ranks", 2, "--epochs", EPOCHS, "--max-restarts", len(stops))
        options += ("--partitions", 8, "--seed", 1, "--block-elements", 32)
        program = ("env", f"LD_PRELOAD={library}", PROGRAMS / "train-digits", "--save", tmp_path / name)
        program += ("--checkpoint", tmp_path / f"{name}.checkpoint", "--every", 5)
        return supply_run(*options, program=program, STOPS=" ".join(stops))

    return start


def counts(checkpoint):
    """How many epochs are complete, and their elements."""
    lines = checkpoint.read_text().splitlines()
    [epochs] = re.fullmatch(r"digits-checkpoint-1 ranks=2 steps=\d+ epochs=(\d+)", lines[0]).groups()
    return int(epochs), float(lines[2].split()[0])


KILLED = r": the ranks failed \(status 137\): a rank was ended by SIGKILL"


def finish_as_if_undisturbed(run, undisturbed, tmp_path):
    """Both runs end, with the same model, and what was saved has each element of an epoch once."""
    assert undisturbed.finish() == 0, undisturbed.errors
    assert run.finish() == 0, run.errors
    assert (tmp_path / "disturbed").read_bytes() == (tmp_path / "undisturbed").read_bytes()
    saved = [(tmp_path / f"{name}.checkpoint").read_bytes() for name in ("disturbed", "undisturbed")]
    assert saved[0] == saved[1]
    epochs, complete = counts(tmp_path / "disturbed.checkpoint")
    assert complete == epochs * IMAGES > 0
    [last], [wanted] = ([line for line in one.lines if line.startswith("train-digits: ")] for one in (run, undisturbed))
    assert last == wanted
    assert f" epochs={EPOCHS} elements={EPOCHS * IMAGES} " in last


def check_restarts(run, *wanted):
    lines = [line for line in run.errors if line.startswith("supply-run: restart ")]
    assert len(lines) == len(wanted), lines
    for number, (line, pattern) in enumerate(zip(lines, wanted), 1):
        assert re.fullmatch(f"supply-run: restart {number} of {len(wanted)}, from {pattern}", line), line


# Before the first checkpoint, inside an epoch, and after its end.
STOPS = {
    "1:3": "the beginning" + KILLED,
    "0:24": r"epoch 0, partition \d, element \d+ of rank 0" + KILLED,
    "1:17": r"epoch [1-9].*" + KILLED,
}


@pytest.mark.parametrize("stops", [["0:24"], pytest.param([*STOPS], marks=pytest.mark.long)])
def test_ranks_that_are_killed(train, tmp_path, stops):
    run = train("disturbed", *stops)
    finish_as_if_undisturbed(run, train("undisturbed"), tmp_path)
    check_restarts(run, *(STOPS[stop] for stop in stops))


@pytest.mark.long
def test_a_driver_that_is_killed(train, tmp_path):
    waiting = tmp_path / "waiting"
    run = train("disturbed", f"0:17:{waiting}", "1:7")
    wait_until(waiting.exists)
    os.kill(run.process_of("supply.lmdb.Supplier"), signal.SIGKILL)
    waiting.unlink()
    finish_as_if_undisturbed(run, train("undisturbed"), tmp_path)
    check_restarts(run, r"epoch \d.*: the Supplier was killed \(SIGKILL\)", r"epoch \d.*" + KILLED)


@pytest.fixture
def attempt(tmp_path):
    """Plays an attempt: the places where its ranks begin, and its failure. Returns whether another one follows."""
    restarts = {}
    pairs = Pairs(tmp_path, 2)

    def play(*elements, failure="the ranks failed (status 1): no luck at port 4711", status=1, hosts=False):
        known = restarts.setdefault(hosts, Restarts(5, many_nodes=hosts))
        starts = known.starts(pairs.mapped_files)
        for local_rank, element in enumerate(elements):
            file = pairs.mapped_file(local_rank)
            play.generation += 1
            start = {"start_epoch": 2, "start_inside": 1, "start_partition": 3, "start_element": element}
            header = bytearray(4096)
            put(header, "mapped_file_header", version=1, generation=play.generation, rank=local_rank, **start)
            file.write_bytes(header)
        while not starts.look():
            pass
        again, play.text = known.after(starts, status, failure)
        return again

    play.generation = 0
    return play


def test_a_run_that_fails_twice_at_one_place_ends_with_both_causes(attempt, capsys):
    assert attempt(10, 20)
    # One rank has advanced.
    assert attempt(10, 30)
    assert attempt(10, 30, failure="another reason")
    assert attempt(10, 30)
    assert not attempt(10, 30, failure="the ranks failed (status 1): no luck at port 4712")
    assert attempt.text == (
        "the ranks failed (status 1): no luck at port 4712 (no restart: the attempt before began at the same place, "
        "and said: the ranks failed (status 1): no luck at port 4711)"
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[1] == (
        "supply-run: restart 2 of 5, from epoch 2, partition 3, element 10 of rank 0: "
        "the ranks failed (status 1): no luck at port 4711"
    )


def test_kills_and_lost_executors_do_not_count_as_the_same_place(attempt):
    assert all(attempt(10, 20, status=137, failure="a rank was ended by SIGKILL") for _ in range(3))
    assert all(attempt(10, 20, failure="ExecutorLostFailure (executor 1 exited)") for _ in range(2))
    # At most five.
    assert not attempt(30, 40)


def test_pairs_of_other_nodes_are_not_seen(attempt):
    assert attempt() and not attempt()
    assert attempt(hosts=True) and attempt(hosts=True)
