"""TensorBoard, while the ranks train: rank 0 writes the loss, and where its time went in each epoch."""

import os

import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch import distributed
from torch.utils.tensorboard import SummaryWriter


def train(data, folder):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    board = SummaryWriter(folder) if distributed.get_rank() == 0 else None
    steps = 0
    for epoch in data.epochs():
        for batch in epoch:
            loss = torch.nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if board:
                board.add_scalar("loss", loss.item(), steps)
    if board:
        for row in data.statistics():
            seconds = {"for Spark": row.waiting_for_spark, "for ranks": row.waiting_for_ranks, "program": row.program}
            board.add_scalars("seconds", seconds, row.epoch)
        board.close()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
rows = Rows(df, columns=["features", "label"], batch_size=25, epochs=3)
Supplier(ranks=2).run(train, rows, os.path.abspath("board"))
