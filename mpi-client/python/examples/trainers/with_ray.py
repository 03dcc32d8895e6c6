"""Ray Train, on one node: Ray starts the ranks, and Spark supplies them from a thread.

Use neither prepare_data_loader nor Ray Data: each rank reads its own rows. With a GPU, call
data.to(ray.train.torch.get_device()) before the loop.

    launch/make-configs 2 /dev/shm/my-run conf
    export PYSPARK_SUBMIT_ARGS="--master local[2] --jars spark-supplier/target/spark-supplier.jar pyspark-shell"
    python with_ray.py
"""

import concurrent.futures
import os
import tempfile

import ray.train
import torch
from pyspark.sql import SparkSession
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from spark_supplier.torch import Dataset
from torch import distributed

CONF = os.path.abspath("conf")


def train(settings):
    model = prepare_model(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    steps = 0
    with Dataset(settings["conf"], columns=["features", "label"], batch_size=25, uneven="pad") as data:
        for epoch in data.epochs():
            for batch in epoch:
                loss = torch.nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            states = [None] * distributed.get_world_size()
            distributed.all_gather_object(states, data.state_dict())
            with tempfile.TemporaryDirectory() as folder:
                checkpoint = None
                if distributed.get_rank() == 0:
                    torch.save(
                        {"model": model.module.state_dict(), "data": states}, os.path.join(folder, "checkpoint.pt")
                    )
                    checkpoint = Checkpoint.from_directory(folder)
                ray.train.report({"steps": steps, "loss": loss.item()}, checkpoint=checkpoint)


def supply():
    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
    df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
    writer = df.write.format("supply").mode("append").option("ranks", 2).option("epochs", 3)
    for name in ("mapped-files", "named-pipes"):
        writer = writer.option(name, f"{CONF}/{name}.conf")
    writer.save()


ranks = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})
trainer = TorchTrainer(train, train_loop_config={"conf": CONF}, scaling_config=ranks)
with concurrent.futures.ThreadPoolExecutor() as threads:
    supplied = threads.submit(supply)
    result = trainer.fit()
    supplied.result()
saved = torch.load(os.path.join(result.checkpoint.path, "checkpoint.pt"))
print(
    f"{result.metrics['steps']} steps, loss {result.metrics['loss']:.4f}, {len(saved['data'])} states in the checkpoint"
)
