"""Trains a linear model on a DataFrame, with one call (docs/TUTORIAL.md)."""

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier


def train(data, learning_rate):  # runs in each rank; data has the rows of this rank
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP

    model = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for epoch in data.epochs():
        for batch in epoch:  # a dict of tensors by column
            loss = torch.nn.functional.mse_loss(model(batch["features"])[:, 0], batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch.number}: loss {loss.item():.4f}")
    return model.module.state_dict()  # rank 0's result comes back


spark = spark_supplier.session(SparkSession.builder.master("local[3]"))
df = spark.range(0, 10000, 1, 8).selectExpr("rand(1) as a", "rand(2) as b", "rand(3) as c")
df = df.selectExpr("array(float(a), float(b), float(c)) as features", "float(a + 2 * b - c) as label")

state = Supplier(ranks=2).run(
    train, Rows(df, columns=["features", "label"], batch_size=64, epochs=5, seed=1), learning_rate=0.1
)
print(state["weight"])
