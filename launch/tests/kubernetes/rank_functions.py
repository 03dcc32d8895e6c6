"""What ranks call. The executors' pods get this module from the driver."""

import socket
import time

import torch
from torch import distributed


def gather(data):
    ids = [number for batch in data for number in batch["id"].tolist()]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), ids))
    return gathered


def take_one_and_wait(data):
    for _ in data:
        print("has a batch", flush=True)
        time.sleep(1000)


def take_memory(data):
    if distributed.get_rank() == 1:
        held = [torch.ones(1 << 20) for _ in range(4096)]
        return len(held)
    return [len(batch["id"]) for batch in data]


def save_until_lost(data):
    """The first attempt saves again and again; the next one says who is left, and all rows of both."""
    found = data.saved or []
    if data.restarts > 0:
        # Those of the ranks that have gone are with the first one.
        found = []
        if distributed.get_rank() == 0:
            found = [row for then in data.saved_ranks for row in data.saved_of(then)]
    for step, batch in enumerate(data):
        found += batch["id"].tolist()
        while data.restarts == 0 and step == 3:
            data.save(found)
            distributed.barrier()
            print("has a batch", flush=True)
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (socket.gethostname(), found))
    return gathered, data.restarts


def see_slowly(data):
    """All rows of all ranks, each with its epoch: also of ranks that have gone, whose rows are in the checkpoint."""
    found = []
    if data.restarts > 0 and distributed.get_rank() == 0:
        found = [row for then in data.saved_ranks for row in data.saved_of(then)]
    for epoch in data.epochs():
        for batch in epoch:
            found += [(epoch.number, number) for number in batch["id"].tolist()]
            time.sleep(0.1)
            data.save(found)
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, found)
    return [row for rows in gathered for row in rows]
