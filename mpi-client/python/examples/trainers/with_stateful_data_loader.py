"""As with_torchrun.py, with torchdata's StatefulDataLoader. Leave num_workers out: spark_supplier.torch.DataLoader has
workers, and counts their batches.
"""

import torch
from spark_supplier.torch import Dataset
from torch import distributed
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torchdata.stateful_dataloader import StatefulDataLoader

distributed.init_process_group("gloo")
rank = distributed.get_rank()
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
steps = 0
with Dataset("conf", columns=["features", "label"], batch_size=25, uneven="pad") as data:
    loader = StatefulDataLoader(data, batch_size=None)
    for _ in range(3):
        for batch in loader:
            loss = mse_loss(model(batch["features"]).squeeze(1), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        torch.save({"model": model.module.state_dict(), "data": loader.state_dict()}, f"rank-{rank}.pt")
print(f"rank {rank}: {steps} steps, {model.module.weight.detach().cpu().numpy().round(2)}")
distributed.destroy_process_group()
