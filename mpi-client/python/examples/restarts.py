"""Trains while its ranks are killed, and ends with the model of an undisturbed run (docs/RESTARTS.md)."""

import random
import sys
import tempfile

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier

KILLS = 3


def train(data, at_batches):
    import os
    import signal

    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel as DDP

    torch.manual_seed(7)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = 0
    if state := data.saved:  # None at first
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        batches = state["batches"]
        if distributed.get_rank() == 0:
            print(f"restart {data.restarts}: goes on after batch {batches}")
    for epoch in data.epochs():
        for batch in epoch:
            loss = torch.nn.functional.mse_loss(model(batch["features"])[:, 0], batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batches += 1
            if batches % 10 == 0:
                own = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "batches": batches}
                data.save(own if distributed.get_rank() == 0 else None)
            is_killed = data.restarts < len(at_batches) and batches == at_batches[data.restarts]
            if is_killed and distributed.get_rank() == data.restarts % distributed.get_world_size():
                os.kill(os.getpid(), signal.SIGKILL)
    return batches, model.module.state_dict()


spark = spark_supplier.session(SparkSession.builder.master("local[3]"))
df = spark.range(0, 10000, 1, 8).selectExpr("rand(1) as a", "rand(2) as b", "rand(3) as c")
df = df.selectExpr("array(float(a), float(b), float(c)) as features", "float(a + 2 * b - c) as label")
seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1000)
kills = sorted(random.Random(seed).sample(range(1, 150), KILLS))

models = []
for killed in ([], kills):
    with tempfile.TemporaryDirectory() as folder:
        supplier = Supplier(ranks=2, restarts=KILLS, checkpoints=f"file://{folder}")
        models.append(supplier.run(train, Rows(df, batch_size=128, epochs=2, seed=1, order="global"), killed))
(batches, undisturbed), (all_batches, model) = models
same = all(bool((model[name] == value).all()) for name, value in undisturbed.items())
print(f"seed {seed}: killed at batches {kills} of {all_batches}; the same model, bit by bit: {same}")
sys.exit(0 if same and batches == all_batches else 1)
