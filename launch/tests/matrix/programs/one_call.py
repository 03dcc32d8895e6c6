"""Supplier.run on two ranks with results. Prints how many rows came back, and the sum of one column.

Its argument is the launcher of the ranks. With mpirun they add up their rows by MPI.
"""

import sys

import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier import Mpirun, Rows, Supplier

ROWS, RANKS = 10000, 2
launcher = sys.argv[1]


def double(data, over_mpi):
    rows = 0
    with data.results() as out:
        for batch in data:
            rows += len(batch["number"])
            out.write({"number": batch["number"], "double": 2 * batch["number"]})
    if not over_mpi:
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD.allreduce(rows), MPI.Get_library_version().partition("\n")[0]


# Without mpirun a task starts the ranks.
cores = RANKS if launcher == "mpirun" else RANKS + 1
spark = spark_supplier.session(SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", False))
df = spark.range(0, ROWS, 1, 4 * RANKS).withColumnRenamed("id", "number")
done = Supplier(ranks=RANKS, launcher=Mpirun() if launcher == "mpirun" else "torch", backend=None).run(
    double,
    Rows(df, columns=["number"], batch_size=100),
    over_mpi=launcher == "mpirun",
    results="number long, double long",
)
[row] = done.rows.selectExpr("count(distinct number) as rows", "sum(double) as sum").collect()
print(f"rows: rows={row.rows} sum={row['sum']}")
if launcher == "mpirun":
    print(f"ranks: rows={done.value[0]} mpi={done.value[1]}")
done.release()
spark.stop()
