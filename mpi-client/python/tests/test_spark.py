"""The examples, as they stand, under mpirun, fed by a real Supplier with the handwritten digits."""

import json
import os
import re
import subprocess
import sys

import pytest
from layout import ROOT

DIGITS = ROOT / "build" / "digits"
EXAMPLES = ROOT / "mpi-client" / "python" / "examples"
EPOCHS, ELEMENTS, HELD_OUT, ACCURACY_WANTED = 4, 1437, 360, 0.90
LIMIT_SECONDS = 240

for module in ("mpi4py", "torch"):
    pytest.importorskip(module, reason=f"no {module} (on Debian: apt-get install python3-{module})")

# What an independent reader finds: py-lmdb and protobuf, of the project's own environment.
READER = """
import json, sys
import datum_pb2, lmdb
with lmdb.open(sys.argv[1], readonly=True, lock=False) as environment, environment.begin() as transaction:
    datums = [datum_pb2.Datum.FromString(value) for _, value in transaction.cursor()]
pixels = [pixel for datum in datums for pixel in datum.data]
print(json.dumps({"elements": len(datums), "label": sum(d.label for d in datums) / len(datums), "data": sum(pixels) / len(pixels)}))
"""


def supply_run(lmdb, program, *arguments, epochs=1, expected_status=0):
    """Both sides: what the ranks print, and what is said on stderr."""
    command = [
        ROOT / "launch" / "supply-run", "--lmdb", DIGITS / lmdb, "--ranks", "2", "--epochs", epochs, "--partitions", "8", "--seed", "1",
        "--block-elements", "48", "--timeout", "60", "--", sys.executable, EXAMPLES / program, *arguments,
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode != 0) == (expected_status != 0), done.stderr
    return done.stdout, done.stderr


def samples(path):
    """The keys of each step, of both ranks."""
    return [path.with_name(f"{path.name}.{rank}").read_text().splitlines() for rank in range(2)]


def test_column_means():
    out, _ = supply_run("train_lmdb", "column_means.py", "label", "data", epochs=2)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "python")}
    expected = json.loads(
        subprocess.run(
            [ROOT / "build/venv/bin/python", "-c", READER, DIGITS / "train_lmdb"],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    assert f"elements={expected['elements']} ranks=2" in out and expected["elements"] == ELEMENTS
    for column in ("label", "data"):
        assert float(re.search(f"{column} mean=(.*)", out)[1]) == pytest.approx(expected[column], rel=1e-12)


def test_training_stopped_in_an_epoch_goes_on_in_the_same_order(tmp_path):
    train = ("train_lmdb", "train_digits.py", "--epochs", EPOCHS)
    supply_run(*train, "--samples", tmp_path / "whole", epochs=EPOCHS)
    whole = samples(tmp_path / "whole")
    steps = len(whole[0])
    assert len(whole[1]) == steps and len({key for rank in whole for step in rank for key in step.split()}) == ELEMENTS

    # In the middle of an epoch, and of a block: 32 is no multiple of 48.
    stop = steps // EPOCHS + 4
    out, error = supply_run(
        *train,
        "--samples",
        tmp_path / "first",
        "--checkpoint",
        tmp_path / "checkpoint",
        "--stop-after",
        stop,
        epochs=EPOCHS,
        expected_status=1,
    )
    assert f"stopped after {stop} steps, in epoch 1" in out and f"stopped after {stop} steps" in error, (out, error)
    supply_run(
        *train,
        "--samples",
        tmp_path / "second",
        "--resume",
        tmp_path / "checkpoint",
        "--save",
        tmp_path / "model.pt",
        epochs=EPOCHS,
    )
    first, second = samples(tmp_path / "first"), samples(tmp_path / "second")
    assert [before + after for before, after in zip(first, second)] == whole

    out, _ = supply_run("test_lmdb", "train_digits.py", "--evaluate", tmp_path / "model.pt")
    assert f"evaluated={HELD_OUT} " in out and float(re.search("accuracy=(.*)", out)[1]) >= ACCURACY_WANTED
