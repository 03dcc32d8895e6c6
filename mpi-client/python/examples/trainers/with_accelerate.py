"""Hugging Face Accelerate. Do not pass the data to prepare(): it would divide the batches of each rank once more.
DataLoaderShard reads one batch ahead, so save at the end of an epoch.
"""

import os

import torch
from accelerate import Accelerator
from accelerate.data_loader import DataLoaderShard
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session

EPOCHS = 3


def train(data):
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    model = torch.nn.Linear(3, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.3))
    loader = DataLoaderShard(data, device=accelerator.device, batch_size=None)
    steps, saved = 0, data.saved
    if saved:  # after a restart, and with resume=True
        accelerator.unwrap_model(model).load_state_dict(saved["model"])
        loader.set_epoch(saved["epoch"] + 1)
    for epoch in range(saved["epoch"] + 1 if saved else 0, EPOCHS):
        for batch in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["label"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            steps += 1
        own = {"model": accelerator.get_state_dict(model), "epoch": epoch}
        data.save(own if accelerator.is_main_process else None)
    return steps, accelerator.unwrap_model(model).weight.detach().cpu().numpy()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
supplier = Supplier(ranks=2, checkpoints=f"file://{os.path.abspath('saved')}")
steps, weight = supplier.run(train, Rows(df, columns=["features", "label"], batch_size=25, epochs=EPOCHS))
print(f"{steps} steps, {weight.round(2)}")
