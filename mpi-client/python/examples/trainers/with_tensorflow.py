"""TensorFlow, one rank. With several, average the gradients as with_jax.py does, or use tensorflow.distribute."""

import tensorflow
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session
from torch.utils.dlpack import to_dlpack


def train(data):
    weight = tensorflow.Variable(tensorflow.zeros([3, 1]))
    for epoch in data.epochs():
        for batch in epoch:
            names = ("features", "label")
            features, label = (tensorflow.experimental.dlpack.from_dlpack(to_dlpack(batch[name])) for name in names)
            with tensorflow.GradientTape() as tape:
                error = tensorflow.reduce_mean((tensorflow.squeeze(features @ weight, 1) - label) ** 2)
            weight.assign_sub(0.3 * tape.gradient(error, weight))
    return weight.numpy().ravel().tolist()


spark = session(SparkSession.builder.master("local[2]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
weight = Supplier(ranks=1).run(train, Rows(df, columns=["features", "label"], batch_size=25, epochs=3))
print([round(value, 2) for value in weight])
