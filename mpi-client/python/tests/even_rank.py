"""A rank of two: prints the batches of its epoch. Arguments: rank, folder of its config files, file of the store, uneven."""

import sys

import torch.distributed
from supply.torch import SupplyDataset

rank, folder, store, uneven = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
with SupplyDataset(folder, 0, columns=["x"], batch_size=4, uneven=uneven, timeout=60) as dataset:
    print(*(batch["x"].tolist() for batch in dataset))
