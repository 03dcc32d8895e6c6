"""Lightning.

Without num_sanity_val_steps=0, it reads two batches of the first validation, and that validation is gone. Save at the
end of an epoch: inside one, Lightning may have read one batch more than it has trained on.
"""

import os

import pytorch_lightning as lightning
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch.utils.data import DataLoader

EPOCHS = 3


class Model(lightning.LightningModule):
    def __init__(self, data):
        super().__init__()
        self.data = data
        self.line = torch.nn.Linear(3, 1)

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.line(batch["features"]).squeeze(1), batch["label"])

    def validation_step(self, batch, index):
        self.log("error", self.training_step(batch, index), batch_size=len(batch["label"]), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.3)

    def on_save_checkpoint(self, checkpoint):  # on all ranks, at the end of each epoch
        self.data.save(checkpoint["state_dict"] if self.global_rank == 0 else None)


def train(data, folder):
    ranks_of_node = int(os.environ["LOCAL_WORLD_SIZE"])
    trainer = lightning.Trainer(
        strategy="ddp",
        devices=ranks_of_node,
        num_nodes=int(os.environ["WORLD_SIZE"]) // ranks_of_node,
        max_epochs=EPOCHS,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        logger=False,
    )
    model = Model(data)
    if data.saved:  # after a restart, and with resume=True
        model.load_state_dict(data.saved)
    trainer.fit(model, DataLoader(data, batch_size=None), DataLoader(data.validation, batch_size=None))
    return trainer.global_step, trainer.callback_metrics["error"].item()


spark = session(SparkSession.builder.master("local[5]"))
rows = spark.range(0, 1250, 1, 10).selectExpr("id", "array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("id", "features", "float(features[0] + 2 * features[1]) as label")
train_rows, validation = df.where("id % 5 > 0"), df.where("id % 5 = 0")
rows = Rows(train_rows, columns=["features", "label"], batch_size=25, epochs=EPOCHS, validation=validation)
supplier = Supplier(ranks=2, checkpoints=f"file://{os.path.abspath('saved')}")
steps, error = supplier.run(train, rows, os.getcwd())
print(f"{steps} steps, validation error {error:.4f}")
