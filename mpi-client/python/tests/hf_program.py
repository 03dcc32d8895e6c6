"""The Hugging Face Trainer stops in the middle of an epoch and resumes there; prints how often it got each row."""

import collections
import pathlib
from typing import Any

import spark_supplier
import spark_supplier.hf
import torch
import transformers
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch import distributed

ROWS, RANKS, EPOCHS = 1000, 2, 3
STOP = 30


class Seen(torch.nn.Module):
    """Keeps the ids that it is given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.ids = []

    def forward(self, id):
        self.ids += id.tolist()
        return {"loss": (self.weight * id.float() / ROWS).mean()}


class Trainer(spark_supplier.hf.TrainerMixin, transformers.Trainer):
    pass


def train(data, folder, steps):
    arguments = transformers.TrainingArguments(
        folder, max_steps=steps, save_steps=STOP, report_to="none", use_cpu=True, disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )  # fmt: skip
    trainer = Trainer(Seen(), arguments, train_dataset=data)
    try:
        trainer.evaluate(data)
    except spark_supplier.SupplyError as error:
        print(f"refused: {error}")
    trainer.train(resume_from_checkpoint=data.saved)
    ids: list[Any] = [None] * RANKS
    distributed.all_gather_object(ids, trainer.model.ids)
    return [id for part in ids for id in part], trainer.state.global_step


folder = pathlib.Path("model").absolute()
spark = session(SparkSession.builder)
df = spark.range(0, ROWS, 1, 8)
rows = Rows(df, columns=["id"], batch_size=25, epochs=EPOCHS, seed=1)
supplier = Supplier(RANKS, checkpoints=folder / "data")
ids, _ = supplier.run(train, rows, folder=str(folder), steps=STOP)
# More steps than rows: the end of the data ends the training.
more, steps = supplier.run(train, rows, folder=str(folder), steps=1000, resume=True)
times = collections.Counter(collections.Counter(ids + more).values())
print(f"{len(ids)} rows, {len(more)} rows, {steps} steps, rows by times: {dict(times)}")
