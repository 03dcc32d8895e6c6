"""Workers' batches that do not fit into /dev/shm, for test_worker_memory: `small_memory_program.py FOLDER`."""

import gc
import json
import pathlib
import sys
import threading

import torch
from spark_supplier.errors import SupplyError
from spark_supplier.torch import DataLoader, Dataset
from torch.utils.data import DataLoader as PLAIN  # noqa: N811

from feeding import supply_epochs
from pair_files import PairFiles

MIB = 1 << 20


def large(batch):
    return {"large": torch.zeros(20 * MIB, dtype=torch.uint8)}


def growing(batch):
    """The first batches are small, and the third one is larger than all memory."""
    return [batch["x"], torch.zeros(MIB if batch["x"][0] < 8 else 70 * MIB, dtype=torch.uint8)]


def small(batch):
    """All batches of the epoch would not fit, but those that wait do."""
    return torch.zeros(8 * MIB, dtype=torch.uint8)


def loop(folder, loader, transform):
    """How many batches the loop gets, or the error."""
    # The exception of a worker, which PyTorch raises again, refers to itself, and to the failed loop with its batches.
    gc.collect()
    folder.mkdir()
    files = PairFiles(folder)
    data = Dataset(folder, 0, columns=["x"], batch_size=4, timeout=60, transform=transform)
    data._opened()
    task = threading.Thread(target=supply_epochs, args=(files, [4] * 20), daemon=True)
    task.start()
    try:
        count = sum(1 for _ in loader(data, batch_size=None, num_workers=2, multiprocessing_context="fork"))
        data.close()
        task.join()
        return count
    except SupplyError as error:
        data.abort("the loop has failed")
        return str(error)


if __name__ == "__main__":
    names = {"ours": DataLoader, "plain": PLAIN}
    found = {
        f"{transform.__name__}, {name}": loop(
            pathlib.Path(sys.argv[1], f"{transform.__name__}-{name}"), loader, transform
        )
        for transform in (small, large, growing)
        for name, loader in names.items()
    }
    print(json.dumps(found))
