"""A driver program that trains on a DataFrame, for bench/one_call. It does one run for each line of JSON on stdin."""

import glob
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from typing import NamedTuple

import pyspark
import session
from one_call_training import BATCH, COLUMNS, train_files, train_partition, train_ray, train_supplied
from pyspark.ml.torch.distributor import TorchDistributor
from spark_supplier import Rows, Supplier

WIDTH = 784
# Imported before anything is timed, as this product is.
LOADERS = ("datasets", "litdata", "streaming.base.converters", "ray.train.torch")
# As Petastorm's converter; of LitData and Mosaic their defaults.
ROW_GROUP_BYTES, CHUNK_BYTES = 32 << 20, "64MB"
# Large data is the same files many times over: Spark would take minutes to compute it.
COPIES = 20


class Call(NamedTuple):
    """frame: computed, or read from `stored` if that is a folder of Parquet files. step: what ranks do."""

    frame: object
    rows: int
    ranks: int
    epochs: int
    step: str
    folder: str
    stored: str


def samples(spark, rows, partitions):
    """Each row takes Spark tens of microseconds, as rows do that are decoded or joined. No dictionary helps Parquet."""
    features = f"transform(sequence(0, {WIDTH - 1}), i -> cast((id * i) % 65521 AS float)) AS features"
    return spark.range(0, rows, 1, partitions).selectExpr(features, "id AS label")


def tally(frame):
    """Spark's own tally. Sums of integers that a double holds do not depend on their order."""
    sums = frame.selectExpr("count(*)", "sum(aggregate(features, 0d, (sum, value) -> sum + value))", "sum(label)")
    samples, features, label = sums.first()
    return {"samples": samples, "features": int(features), "label": label}


def compute(call):
    """Spark's part alone."""
    call.frame.write.format("noop").mode("overwrite").save()
    return []


def supplied(call):
    return by_supplier(Supplier(call.ranks), call)


def by_supplier(supplier, call):
    # As the files of the others: Spark computes the rows once.
    cache = f"{call.folder}/cache" if call.epochs > 1 else None
    rows = Rows(call.frame, columns=COLUMNS, batch_size=BATCH, epochs=call.epochs, uneven="keep", cache=cache)
    return supplier.run(train_supplied, rows, call.step)


def supplied_again(call):
    """The second call of the same ranks, with the time when it began."""
    with Supplier(call.ranks) as supplier:
        by_supplier(supplier, call)
        start = time.time()
        return start, by_supplier(supplier, call)


def partition_files(call):
    """By a method that PySpark keeps private."""
    return distributor(call)._train_on_dataframe(train_partition, call.frame, call.epochs, call.rows // call.ranks)


def distributor(call):
    return TorchDistributor(num_processes=call.ranks, local_mode=False, use_gpu=False)


def read_by(reader, write):
    """A way that prepares files, and then trains on them."""
    return lambda call: distributor(call).run(train_files, reader, call.epochs, write(call), call.step)


def parquet(call):
    if call.stored:
        return call.stored
    write_parquet(call.frame, f"{call.folder}/parquet")
    return f"{call.folder}/parquet"


def write_parquet(frame, folder):
    writer = frame.write.option("compression", "uncompressed").option("parquet.enable.dictionary", "false")
    writer.option("parquet.block.size", ROW_GROUP_BYTES).parquet(folder)


def litdata_chunks(call):
    import litdata

    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = f"{call.folder}/litdata-cache"
    files = glob.glob(f"{parquet(call)}/*.parquet")
    litdata.optimize(litdata_rows, files, f"{call.folder}/litdata", chunk_bytes=CHUNK_BYTES, num_workers=call.ranks)
    return f"{call.folder}/litdata"


def litdata_rows(path):
    import pyarrow.parquet
    import torch

    for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
        label = batch.column("label").to_numpy()
        features = batch.column("features").flatten().to_numpy().reshape(len(label), -1)
        yield from ({"features": torch.from_numpy(x.copy()), "label": int(y)} for x, y in zip(features, label))


def mosaic_shards(call):
    from streaming.base.converters import dataframe_to_mds

    columns = {"features": f"ndarray:float32:{WIDTH}", "label": "int64"}
    dataframe_to_mds(call.frame, mds_kwargs={"out": f"{call.folder}/mosaic", "columns": columns})
    return f"{call.folder}/mosaic"


def arrow_cache(call):
    import datasets

    return datasets.Dataset.from_spark(call.frame, cache_dir=f"{call.folder}/datasets")


def ray_data(call):
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    # Its sockets' paths must be short.
    with tempfile.TemporaryDirectory() as files:
        # A processor for each rank, and as many for reading.
        ray.init(num_cpus=2 * call.ranks, include_dashboard=False, log_to_driver=False, _temp_dir=files)
        try:
            what = {"epochs": call.epochs, "step": call.step, "answers": f"{call.folder}/answers"}
            TorchTrainer(
                train_ray,
                train_loop_config=what,
                datasets={"train": ray.data.read_parquet(parquet(call))},
                scaling_config=ScalingConfig(num_workers=call.ranks),
                run_config=RunConfig(storage_path=f"{call.folder}/ray"),
            ).fit()
        finally:
            ray.shutdown()
    with open(what["answers"], encoding="utf-8") as file:
        return json.load(file)


WAYS = {
    "compute": compute,
    "supplier": supplied,
    "supplier, second call": supplied_again,
    "partition files": partition_files,
    "parquet": read_by("hand", parquet),
    "dataloader": read_by("dataloader", parquet),
    "litdata": read_by("litdata", litdata_chunks),
    "mosaic": read_by("mosaic", mosaic_shards),
    "datasets": read_by("datasets", arrow_cache),
    "ray": ray_data,
}


def main():
    local_dir, jar, heap_mib, ranks, rows, stored = (*sys.argv[1:4], *map(int, sys.argv[4:6]), sys.argv[6])
    # Loaders print.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Only the loaders' own environment has them.
    if importlib.util.find_spec("litdata"):
        for name in LOADERS:
            importlib.import_module(name)
    # A slot for each rank, and one that starts them.
    spark = session.start(local_dir, jar, heap_mib, ranks + 1)
    try:
        if spark.version != pyspark.__version__:
            sys.exit(f"TorchDistributor is of PySpark {pyspark.__version__}, and Spark is {spark.version}")
        distinct = rows // COPIES if stored else rows
        frame = samples(spark, distinct, ranks)
        about = {"version": spark.version}
        if stored:
            write_parquet(frame, stored)
            for path in glob.glob(f"{stored}/*.parquet"):
                for number in range(1, COPIES):
                    shutil.copyfile(path, f"{path.removesuffix('.parquet')}-{number}.parquet")
            frame = spark.read.parquet(stored)
            # Its features would take Spark minutes.
            about["tally"] = {"samples": rows, "label": COPIES * distinct * (distinct - 1) // 2}
        else:
            about["tally"] = tally(frame)
        print(json.dumps(about), file=out, flush=True)
        for line in sys.stdin:
            what = json.loads(line)
            folder = tempfile.mkdtemp(dir=local_dir)
            start = time.time()
            try:
                answers = WAYS[what.pop("way")](Call(frame, rows, ranks, folder=folder, stored=stored, **what))
                if isinstance(answers, tuple):
                    start, answers = answers
                answer = {"start": start, "end": time.time(), "ranks": answers}
            except Exception as error:
                traceback.print_exc()
                answer = {"error": str(error).partition("\n")[0]}
            shutil.rmtree(folder)
            print(json.dumps(answer), file=out, flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
