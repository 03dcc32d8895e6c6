"""The ranks of torchrun. To resume, each rank calls data.load_state_dict() with its state before the first iteration.

launch/make-configs 2 /dev/shm/my-run conf
spark-submit --master local[2] --jars spark-supplier/target/spark-supplier.jar spark_side.py &
torchrun --standalone --nproc_per_node 2 with_torchrun.py; wait
"""

import torch
from spark_supplier.torch import Dataset
from torch import distributed
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
rank = distributed.get_rank()
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
steps = 0
with Dataset("conf", columns=["features", "label"], batch_size=25, uneven="pad") as data:
    for epoch in data.epochs():
        for batch in epoch:
            loss = mse_loss(model(batch["features"]).squeeze(1), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        torch.save({"model": model.module.state_dict(), "data": data.state_dict()}, f"rank-{rank}.pt")
print(f"rank {rank}: {steps} steps, {model.module.weight.detach().cpu().numpy().round(2)}")
distributed.destroy_process_group()
