"""JAX. DLPack copies nothing: do not change the batch. On accelerators use jax.distributed, and backend=None."""

import jax
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch import distributed


def train(data):
    def error(weight, features, label):
        return ((features @ weight - label) ** 2).mean()

    gradient = jax.jit(jax.grad(error))
    weight = jax.numpy.zeros(3)
    for epoch in data.epochs():
        for batch in epoch:
            features, label = (jax.dlpack.from_dlpack(batch[name]) for name in ("features", "label"))
            mean = torch.from_dlpack(gradient(weight, features, label)).clone()
            distributed.all_reduce(mean)
            weight -= 0.3 * jax.dlpack.from_dlpack(mean / distributed.get_world_size())
    return weight.tolist()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
weight = Supplier(ranks=2).run(train, Rows(df, columns=["features", "label"], batch_size=25, epochs=3))
print([round(value, 2) for value in weight])
