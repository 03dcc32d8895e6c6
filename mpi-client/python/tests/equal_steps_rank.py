"""A rank of two. Prints the number of its all_reduces, and the batches of its epoch.

Arguments: rank, folder of its config files, file of the torch.distributed store, uneven, file of the state. If that
file exists the rank resumes from it; otherwise it saves the state there after its second step.
"""

import pathlib
import sys

import torch.distributed
from spark_supplier.torch import Dataset

rank, folder, store, uneven, state = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
all_reduces: list[tuple[object, ...]] = []
all_reduce = torch.distributed.all_reduce


def counted_all_reduce(*arguments, **options):
    all_reduces.append(arguments)
    return all_reduce(*arguments, **options)


torch.distributed.all_reduce = counted_all_reduce
with Dataset(folder, 0, columns=["x"], batch_size=4, uneven=uneven, timeout=60) as dataset:  # type: ignore[arg-type]
    resumes = pathlib.Path(state).exists()
    if resumes:
        dataset.load_state_dict(torch.load(state))
    batches = []
    for batch in dataset:
        batches.append(batch["x"].tolist())
        if len(batches) == 2 and not resumes:
            torch.save(dataset.state_dict(), state)
        # A loop may change what it gets. What is repeated is what Spark has sent.
        batch["x"].zero_()
        del batch["x"]
    print(len(all_reduces), *batches)
