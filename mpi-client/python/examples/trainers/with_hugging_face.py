"""The Hugging Face Trainer. With TrainerMixin, each rank trains on all batches of its own data.

max_steps says how long to train. Loop over data.validation in the function: ranks may have different numbers of its
batches.
"""

import os

import spark_supplier.hf
import torch
import transformers
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session

STEPS = 60


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(3, 1)

    def forward(self, features, label):
        return {"loss": torch.nn.functional.mse_loss(self.line(features).squeeze(1), label)}


class Trainer(spark_supplier.hf.TrainerMixin, transformers.Trainer):
    pass


def train(data, folder):
    arguments = transformers.TrainingArguments(
        folder,
        max_steps=STEPS,
        learning_rate=0.3,
        optim="sgd",
        lr_scheduler_type="constant",
        save_steps=25,
        report_to="none",
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    trainer = Trainer(Line(), arguments, train_dataset=data)
    trainer.train(resume_from_checkpoint=data.saved)  # None at first
    return trainer.state.global_step, trainer.model.line.weight.detach().cpu().numpy()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
supplier = Supplier(ranks=2, checkpoints=f"file://{os.path.abspath('saved')}")
rows = Rows(df, columns=["features", "label"], batch_size=25, epochs=3)
steps, weight = supplier.run(train, rows, os.path.abspath("model"))
print(f"{steps} steps, {weight.round(2)}")
