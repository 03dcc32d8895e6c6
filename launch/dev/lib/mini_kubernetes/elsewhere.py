"""A program of PySpark on mini-kubernetes: an executor on one node, and ranks in a pod without Java and Spark.

elsewhere.py RANKS EPOCHS
"""

import pathlib
import subprocess
import sys
import tempfile

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Elsewhere, Rows, Supplier

from one_call import ROWS, SLOPE, settings

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = HERE.parents[3] / "configs" / "kubernetes" / "ranks-elsewhere.yaml"
IMAGE = "localhost/supply-ranks:dev"
RANK = """\
import shutil, socket
import torch
from torch import distributed
import spark_supplier

distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
rows = 0
with spark_supplier.connect() as data:
    for epoch in data.epochs():
        for batch in epoch:
            rows += len(batch["x"])
            loss = (model(batch["x"][:, None])[:, 0] - batch["y"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    total = torch.tensor(rows)
    distributed.all_reduce(total)
    assert shutil.which("java") is None
    data.report(weight=model.module.weight, rows=total)
print(f"{socket.gethostname()} had {rows} rows")
distributed.destroy_process_group()
"""


def kubectl(*words, **options):
    return subprocess.run([HERE.parents[1] / "mini-kubernetes", "kubectl", *words], check=True, text=True, **options)


def start_ranks(ranks):
    """A function that starts the pod of the ranks, for Elsewhere."""

    def start(variables):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "rank.py")
            program.write_text(RANK, encoding="utf-8")
            kubectl("create", "configmap", "ranks", f"--from-file={program}", stdout=sys.stderr)
        literals = [f"--from-literal={name}={value}" for name, value in variables.items()]
        kubectl("create", "secret", "generic", "supply", *literals, stdout=sys.stderr)
        job = TEMPLATE.read_text(encoding="utf-8").replace("IMAGE", IMAGE).replace('"4"', f'"{ranks}"')
        kubectl("apply", "--filename=-", input=job, stdout=sys.stderr)

    return start


def main():
    ranks, epochs = map(int, sys.argv[1:])
    builder = SparkSession.builder.config(map=settings(1, ranks))
    spark = spark_supplier.session(builder)
    frame = (
        spark.range(0, ROWS, 1, 4 * ranks).selectExpr("float(rand(1)) as x").selectExpr("x", f"float({SLOPE} * x) as y")
    )
    supplier = Supplier(ranks, launcher=Elsewhere("train", start=start_ranks(ranks)), start_timeout=300)
    supplier.run(Rows(frame, epochs=epochs))
    reported = supplier.statistics.history[-1]
    nodes = kubectl(
        "get", "pods", "--selector=job in (ranks-elsewhere)", "--output=jsonpath={.items[*].spec.nodeName}",
        stdout=subprocess.PIPE,
    ).stdout.split()  # fmt: skip
    spark.stop()
    kubectl("delete", "job/ranks-elsewhere", "configmap/ranks", "secret/supply", "--wait=false", stdout=sys.stderr)
    print(f"ranks={ranks} on={','.join(nodes)} rows={reported['rows']:.0f} weight={reported['weight']:.2f}")


if __name__ == "__main__":
    main()
