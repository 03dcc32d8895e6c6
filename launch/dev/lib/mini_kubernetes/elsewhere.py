"""A program of PySpark on mini-kubernetes: an executor on one node, and ranks in a pod without Java and Spark.

elsewhere.py RANKS EPOCHS
"""

import inspect
import pathlib
import subprocess
import sys
import tempfile

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Elsewhere, Rows, Supplier

from one_call import rows, settings, train

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = HERE.parents[3] / "configs" / "kubernetes" / "ranks-elsewhere.yaml"
IMAGE = "localhost/supply-ranks:dev"
# With Python 3.11, torchrun of PyTorch 1.13 fails with its own defaults, "0", and keeps what ranks print until its end.
TORCHRUN = {"PET_REDIRECTS": "1", "PET_TEE": "1", "PYTHONUNBUFFERED": "1"}
# The same training as beside Spark.
RANK = f"""\
import shutil

import spark_supplier
from torch import distributed


{inspect.getsource(train)}

assert shutil.which("java") is None
distributed.init_process_group("gloo")
with spark_supplier.connect() as data:
    weight, gathered = train(data)
    data.report(weight=weight, rows=sum(rows for _, rows in gathered))
distributed.destroy_process_group()
"""


def kubectl(*words, **options):
    """Returns what it prints."""
    command = [HERE.parents[1] / "mini-kubernetes", "kubectl", *words]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def remove_ranks():
    """Returns when their pods are gone, too."""
    what = ("job/ranks-elsewhere", "configmap/ranks", "secret/supply")
    kubectl("delete", *what, "--ignore-not-found", "--cascade=foreground")


def start_ranks(ranks, program_text=RANK, new_pods=0):
    """A function that starts the job of the ranks, for Elsewhere: again with each attempt if it makes no new pods."""
    started = []

    def start(variables):
        if new_pods and started:
            return
        started.append(variables)
        remove_ranks()
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "rank.py")
            program.write_text(program_text, encoding="utf-8")
            kubectl("create", "configmap", "ranks", f"--from-file={program}")
        literals = [f"--from-literal={name}={value}" for name, value in {**variables, **TORCHRUN}.items()]
        kubectl("create", "secret", "generic", "supply", *literals)
        job = TEMPLATE.read_text(encoding="utf-8").replace("IMAGE", IMAGE).replace('"4"', f'"{ranks}"')
        kubectl("apply", "--filename=-", input=job.replace("backoffLimit: 0", f"backoffLimit: {new_pods}"))

    return start


def main():
    ranks, epochs = map(int, sys.argv[1:])
    builder = SparkSession.builder.config(map=settings(1, ranks))
    spark = spark_supplier.session(builder)
    supplier = Supplier(ranks, launcher=Elsewhere("train", start=start_ranks(ranks)), start_timeout=300)
    supplier.run(Rows(rows(spark, ranks), epochs=epochs))
    reported = supplier.statistics.history[-1]
    pods = ("get", "pods", "--selector=job=ranks-elsewhere", "--output=jsonpath={.items[*].spec.nodeName}")
    nodes = kubectl(*pods).split()
    spark.stop()
    remove_ranks()
    print(f"ranks={ranks} on={','.join(nodes)} rows={reported['rows']:.0f} weight={reported['weight']:.2f}")


if __name__ == "__main__":
    main()
