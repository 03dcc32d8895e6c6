"""Calls of Supplier.run, whatever is killed: each row of each epoch comes once, or the call says that it has failed."""

import collections
import json
import os
import pathlib
import subprocess

from places import ROOT
from soak import seen
from soak.ground import PYTHON, STUCK
from soak.kills import kills

TESTS = ROOT / "mpi-client" / "python" / "tests"
EXECUTOR = "CoarseGrainedExecutorBackend"
_MOST_KILLS, _LATEST_SECONDS, _CALLS = 5, 10, 4


def from_checkpoints(ground):
    count = ground.chance.randint(1, _MOST_KILLS)
    with kills(ground, count, _LATEST_SECONDS, ground.cluster.executors):
        found = seen.call_with_checkpoints(
            ground.cluster.session, ground.memory, ground.folder / "checkpoints", _restarts(count)
        )
    _check(ground, found, seen.EPOCHS)


def over_connect(ground):
    _from_checkpoints_in_a_program(ground, "connect")


def in_dynamic_allocation(ground):
    _from_checkpoints_in_a_program(ground, "dynamic")


def of_kept_ranks(ground):
    """A call that loses ranks fails, and a later one starts others."""
    from spark_supplier import Rows, RunError, Supplier

    rows = seen.rows(ground.cluster.session)
    count, kills_before, failures = ground.chance.randint(1, _MOST_KILLS), ground.tally.kills, []

    def succeeds():
        try:
            found = supplier.run(seen.see_without_checkpoints, Rows(rows, batch_size=seen.BATCH, uneven="keep"))
        except RunError as error:
            failures.append(error)
            return False
        _check(ground, found, epochs=1)
        return True

    with Supplier(seen.RANKS, folder=str(ground.memory)) as supplier:
        with kills(ground, count, _LATEST_SECONDS / 2, ground.cluster.executors):
            for _ in range(_CALLS):
                succeeds()
        # Ranks of an executor that was just killed end during the next call.
        assert succeeds() or succeeds(), failures
    assert len(failures) <= 2 * (ground.tally.kills - kills_before), failures


def _restarts(kills):
    """An executor that is killed may end two attempts: that in which it dies, and one that was placed on it."""
    return 2 * kills


def _from_checkpoints_in_a_program(ground, kind):
    count = ground.chance.randint(1, _MOST_KILLS)
    command = [PYTHON, seen.__file__, kind, ground.memory, ground.folder / "checkpoints", str(_restarts(count))]
    path = os.pathsep.join(map(str, [pathlib.Path(seen.__file__).parents[1], TESTS]))

    def executors():
        return set(ground.processes.named(EXECUTOR)) - ground.cluster.executors()

    with kills(ground, count, _LATEST_SECONDS, executors):
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=STUCK, check=False
        )
    assert done.returncode == 0, done.stderr
    _check(ground, json.loads(done.stdout.splitlines()[-1]), seen.EPOCHS)


def _check(ground, found, epochs):
    received = collections.Counter(found)
    ground.tally.elements += received.total()
    ground.tally.lost += epochs * seen.COUNT - len(received)
    ground.tally.duplicated += received.total() - len(received)
