"""MLflow, on the driver. MLFLOW_TRACKING_URI names its server, and the ranks need no way to it."""

import mlflow
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session


def train(data):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in data.epochs():
        for batch in epoch:
            loss = torch.nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            data.report(loss=loss.item())


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
supplier = Supplier(ranks=2)
with mlflow.start_run():
    mlflow.log_params({"ranks": 2, "batch_size": 25})
    try:
        supplier.run(train, Rows(df, columns=["features", "label"], batch_size=25, epochs=3))
    finally:
        if statistics := supplier.statistics:
            for step, report in enumerate(statistics.history):
                mlflow.log_metric("loss", report["loss"], step=step)
            for row in statistics.ranks:
                mlflow.log_metric(f"rank_{row['rank']}_waiting_for_spark", row["waiting_for_spark"], step=row["epoch"])
            mlflow.set_tag("bound", statistics.sentence)
