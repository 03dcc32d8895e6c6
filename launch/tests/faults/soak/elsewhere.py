"""Ranks elsewhere: their connections are cut, and executors die, at random."""

import os
import time

from linked_run import LinkedRun
from soak.ground import STUCK, Skipped

_EPOCHS, _MOST_PAUSE_SECONDS = 400, 1


def cut_and_killed(ground):
    if os.geteuid() != 0:
        raise Skipped("only root can cut a connection of another process (ss -K)")
    options = ["--conf=spark.task.maxFailures=1000000", "--conf=spark.stage.maxConsecutiveAttempts=1000000"]
    run = LinkedRun(ground.folder, ground.database, epochs=_EPOCHS, options=options, tally=ground.tally)
    try:
        run.wait_for_bytes()
        end = time.monotonic() + STUCK
        while run.is_running() and time.monotonic() < end:
            time.sleep(ground.chance.uniform(0, _MOST_PAUSE_SECONDS))
            executors = run.executors()
            # Tasks need one that lives, and Spark ends an application whose executors die one after another.
            if len(executors) > 1 and ground.chance.random() < 0.1:
                ground.kill(min(executors))
            else:
                ground.tally.faults += run.cut(ground.chance.randrange(len(run.ranks)))
        run.ends_well()
    finally:
        run.end()
