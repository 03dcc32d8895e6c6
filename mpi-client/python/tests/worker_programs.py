"""Functions that workers of a DataLoader call. They are in a module so that spawned workers find them."""

import os
import time


def doubled(batch):
    return {"x": batch["x"] * 2, "process": os.getpid()}


def slow(batch):
    """The first worker is slower than the others."""
    if batch["x"][0] % 3 == 0:
        time.sleep(0.05)
    return batch


def failing(batch):
    if 8 in batch["x"]:
        raise ZeroDivisionError("the transform has failed")
    return batch


def exiting(batch):
    os._exit(3)


def rows(rows):
    return [row["x"].item() for row in rows]
