"""A linear layer over two ranks: each has half of its outputs, and share= gives both the same batches."""

import spark_supplier
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier
from torch import distributed

INPUTS, OUTPUTS, PARTS = 4, 6, 2


def gathered(mine):
    """The parts of all ranks, in their order. Gradients flow into this rank's own."""
    if len(mine) == PARTS:
        return mine
    parts = [torch.empty_like(mine[0]) for _ in range(PARTS)]
    distributed.all_gather(parts, mine[0].detach())
    parts[distributed.get_rank()] = mine[0]
    return parts


def train(data, learning_rate):
    """The whole weight, and the last loss. With one rank, that has both parts."""
    torch.manual_seed(1)
    parts = [torch.nn.Linear(INPUTS, OUTPUTS // PARTS) for _ in range(PARTS)]
    mine = parts[distributed.get_rank() :: distributed.get_world_size()]
    optimizer = torch.optim.SGD([each for part in mine for each in part.parameters()], lr=learning_rate)
    for batch in data:
        outputs = torch.cat(gathered([part(batch["x"]) for part in mine]), 1)
        loss = (outputs - batch["y"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat(gathered([part.weight.detach() for part in mine])), loss.item()


def compared(spark, supplier_of=Supplier):
    """What two ranks return, and what one returns."""
    x = ", ".join(f"float(sin({number} * id))" for number in range(1, INPUTS + 1))
    y = ", ".join(f"float(cos({number} * id))" for number in range(1, OUTPUTS + 1))
    df = spark.range(0, 2000, 1, 4).selectExpr(f"array({x}) as x", f"array({y}) as y")
    return [
        supplier_of(ranks=ranks).run(train, Rows(df, batch_size=32, seed=1, share=ranks), learning_rate=0.1)
        for ranks in (PARTS, 1)
    ]


if __name__ == "__main__":
    (weight, loss), (weight_of_one, loss_of_one) = compared(
        spark_supplier.session(SparkSession.builder.master("local[2]"))
    )
    print(f"loss {loss:.4f}; one rank has the same to the last bit: {torch.equal(weight, weight_of_one)}")
