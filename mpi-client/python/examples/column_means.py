"""Means of columns over all ranks, with mpi4py and numpy, computed in the memory that Spark wrote.

    launch/make-configs 2 /dev/shm/means conf
    spark-submit --master local[2] --jars spark-supplier.jar \\
        supply.py parquet digits.parquet conf pixel_3_4 target --ranks 2 &
    mpirun -n 2 python column_means.py conf pixel_3_4 target

If an element has many values, for example pixels, the mean is over all of them. Only the first epoch counts.
"""

import argparse

import numpy
import spark_supplier
from mpi4py import MPI


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("columns", metavar="COLUMN", nargs="+")
    arguments = parser.parse_args()
    names = arguments.columns
    comm = MPI.COMM_WORLD
    sums = numpy.zeros((len(names), 2))
    elements = 0
    with spark_supplier.ranks.from_comm(comm, arguments.config) as s:
        for block in s:
            if block.epoch > 0:
                continue
            elements += len(block)
            for total, name in zip(sums, names):
                values = block.numpy(name)
                total += values.sum(dtype="float64"), values.size
                del values
    sums, elements = comm.allreduce(sums), comm.allreduce(elements)
    if comm.rank == 0:
        print(f"column_means: elements={elements} ranks={comm.size}")
        for name, (total, count) in zip(names, sums):
            print(f"column_means: {name} mean={total / count if count else float('nan')!r}")


if __name__ == "__main__":
    main()
