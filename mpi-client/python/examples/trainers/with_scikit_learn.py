"""scikit-learn: the mean of linear models. A classifier needs partial_fit(classes=...) in its first call."""

import torch
from pyspark.sql import SparkSession
from sklearn.linear_model import SGDRegressor
from spark_supplier import Rows, Supplier, session
from torch import distributed


def train(data):
    model = SGDRegressor(learning_rate="constant", eta0=0.1)
    for epoch in data.epochs():
        for batch in epoch:
            model.partial_fit(batch["features"].numpy(), batch["label"].numpy())
        for weights in (model.coef_, model.intercept_):  # from now on the mean of all ranks
            distributed.all_reduce(torch.from_numpy(weights))
            weights /= distributed.get_world_size()
    return model.coef_.tolist()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
weight = Supplier(ranks=2).run(train, Rows(df, columns=["features", "label"], batch_size=25, epochs=3))
print([round(value, 2) for value in weight])
