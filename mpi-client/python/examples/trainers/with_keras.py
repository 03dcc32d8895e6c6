"""Keras with KERAS_BACKEND=torch. fit() gets one epoch in each call, as an iterator. It warns that the data ran out."""

import keras
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch import distributed


class Line(keras.Sequential):
    def train_step(self, batch):
        features, label = batch
        self.zero_grad()
        loss = self.compute_loss(y=label, y_pred=self(features, training=True))
        loss.backward()
        gradients = [weight.value.grad for weight in self.trainable_weights]
        for gradient in gradients:  # the mean of all ranks
            distributed.all_reduce(gradient)
            gradient /= distributed.get_world_size()
        with torch.no_grad():
            self.optimizer.apply(gradients, self.trainable_weights)
        return {"loss": loss}


def train(data):
    keras.utils.set_random_seed(1)  # each rank begins with the same weights
    model = Line([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.3), loss="mse")
    for epoch in data.epochs():
        model.fit(iter(epoch), initial_epoch=epoch.number, epochs=epoch.number + 1, shuffle=False, verbose=0)
    return model.get_weights()[0].ravel().tolist()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
weight = Supplier(ranks=2, environment={"KERAS_BACKEND": "torch"}).run(
    train,
    Rows(
        df,
        columns=["features", "label"],
        batch_size=25,
        epochs=3,
        transform=lambda batch: (batch["features"], batch["label"][:, None]),
    ),
)
print([round(value, 2) for value in weight])
