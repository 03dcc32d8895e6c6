"""Trains a classifier of handwritten digits with one call, and predicts with a second one.

make python build/digits
build/env/bin/python mpi-client/python/examples/predict_digits.py build/digits/train_lmdb build/digits/test_lmdb
"""

import argparse

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier

PIXELS, CLASSES, BRIGHTEST = 64, 10, 16


def images(batch):
    """Pixels from 0 to 1."""
    return batch["data"].reshape(-1, PIXELS).float() / BRIGHTEST


def train(data):
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP

    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(PIXELS, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in data.epochs():
        for batch in epoch:
            loss = torch.nn.functional.cross_entropy(model(images(batch)), batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.module.state_dict()


def predict(data, state):
    import torch

    model = torch.nn.Linear(PIXELS, CLASSES)
    model.load_state_dict(state)
    with data.results() as out, torch.no_grad():
        for batch in data:
            out.write(batch | {"predicted": model(images(batch)).argmax(1)})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", metavar="TRAIN", help="LMDB of the digits to train with (make build/digits)")
    parser.add_argument("test", metavar="TEST", help="LMDB of the digits to predict")
    parser.add_argument("--ranks", type=int, default=2, help="(default 2)")
    parser.add_argument("--epochs", type=int, default=10, help="(default 10)")
    arguments = parser.parse_args()

    # A slot for each rank, and one that starts them.
    spark = spark_supplier.session(SparkSession.builder.master(f"local[{arguments.ranks + 1}]"))
    supplier = Supplier(arguments.ranks)
    digits, unseen = (
        spark.read.format("lmdb").option("partitions", 4 * arguments.ranks).load(lmdb)
        for lmdb in (arguments.train, arguments.test)
    )
    state = supplier.run(train, Rows(digits, columns=["data", "label"], batch_size=32, epochs=arguments.epochs, seed=1))
    rows = Rows(unseen, columns=["data", "label"], batch_size=1024)
    with supplier.run(predict, rows, state, results="label, predicted long not null") as found:
        predictions = found.rows
        predictions.crosstab("label", "predicted").orderBy("label_predicted").show()
        accuracy = predictions.where("label = predicted").count() / unseen.count()
        print(f"predict_digits: predicted={predictions.count()} accuracy={accuracy:.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
